"""Real processes, killed at random moments or watched while they write: nothing told is lost, no alarm is false."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.powerloss.figures import FIGURES
from tests.unmeasured import environment

ROOT = Path(__file__).parents[2]


def nursery(runs: Path, *options: str) -> dict[str, int]:
    """Run the nursery and give its figures."""
    command = [sys.executable, "-m", "tests.faults.nursery", str(runs), *options]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, int] = json.loads(done.stdout)
    return figures


@pytest.mark.parametrize("cycles", [30, pytest.param(1000, marks=pytest.mark.full)])
def test_sigkill_at_random_moments(cycles: int, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Issue 4, hazard 26: each writer goes on where the one before it was killed; every line told of is there."""
    figures = nursery(tmp_path, "--deaths", str(cycles))
    record_property(FIGURES, figures)
    assert figures["wrong"] == 0
    assert figures["cycles"] == cycles
    assert figures["told"] > cycles, "the writers died before they wrote anything: the moments are too early"


@pytest.mark.parametrize("looks", [60, pytest.param(1500, marks=pytest.mark.full)])
def test_verify_in_a_loop_on_a_log_being_written(
    looks: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Issue 4: a reader beside a writer that opens, saves, closes and dies never raises a false alarm."""
    figures = nursery(tmp_path, "--looks", str(looks))
    record_property(FIGURES, figures)
    assert figures["alarms"] == 0
    assert figures["looks"] >= looks // 3, "too few looks for a test"
    assert figures["lines"] >= 20
