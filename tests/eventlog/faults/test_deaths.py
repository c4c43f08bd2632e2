"""Real processes, killed at random moments or watched while they write: nothing told is lost, no alarm is false."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.eventlog.faults import random_kills
from tests.support.figures import FIGURES
from tests.support.forkserver import ForkServer


@pytest.mark.fault("holder killed")
@pytest.mark.parametrize("cycles", [30, pytest.param(1000, marks=pytest.mark.full)])
def test_sigkill_at_random_moments(
    cycles: int, forks: ForkServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each writer goes on where the one before it was killed; every line told of is there."""
    figures = forks.run(random_kills.deaths, runs=tmp_path, cycles=cycles).value
    record_property(FIGURES, figures)
    assert figures["wrong"] == 0
    assert figures["cycles"] == cycles
    assert figures["told"] > cycles, "the writers died before they wrote anything: the moments are too early"


@pytest.mark.parametrize("looks", [60, pytest.param(1500, marks=pytest.mark.full)])
def test_verify_in_a_loop_on_a_log_being_written(
    looks: int, forks: ForkServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A reader beside a writer that opens, saves, closes and dies never raises a false alarm."""
    figures = forks.run(random_kills.watched, runs=tmp_path, looks=looks).value
    record_property(FIGURES, figures)
    assert figures["alarms"] == 0
    assert figures["looks"] >= looks // 3, "too few looks for a test"
    assert figures["lines"] >= 20
