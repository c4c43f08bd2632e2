"""Power cuts on a simulated disk: whatever a cut leaves, nothing acknowledged is lost and nothing is called damage."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlog.simdisk import Model
from tests.eventlog.powerloss import census
from tests.eventlog.powerloss.census import MODELS
from tests.eventlog.powerloss.sweep import RECOVERY, Tally, deaths, failing_syncs, no_room, power, sequences, two_deaths
from tests.support import ROOT
from tests.support.faulty_disk import Fault
from tests.support.figures import FIGURES

NEW_FILES = 3
"""Writes to temporary files while a run is made: a segment, its zeros, the head."""


def said(tally: Tally) -> str:
    """Give the figures and the first violations."""
    return "\n".join([str(tally), *tally.violations[:5]])


@pytest.mark.fault("torn tail")
@pytest.mark.fault("torn sectors")
@pytest.mark.fault("power cut in a recovery")
@pytest.mark.parametrize("model", MODELS)
def test_power_goes_at_any_moment_of_a_short_life(model: Model, tmp_path: Path) -> None:
    """Every sequence of one step, each operation cut, all states while they are few."""
    tally = Tally(tmp_path)
    for steps in sequences(1):
        power(tally, steps, model, since="last step", limit=32)
    assert not tally.violations, said(tally)
    assert len(tally.images) > 100, said(tally)


@pytest.mark.fault("power cut in a recovery")
@pytest.mark.parametrize("model", MODELS)
def test_power_goes_inside_the_recovery(model: Model, tmp_path: Path) -> None:
    """A cut while the end of the log is made safe again is a cut like any other."""
    tally = Tally(tmp_path)
    power(tally, ("create", "two"), model, inside=6)
    assert not tally.violations, said(tally)
    assert len(tally.images) > 50, said(tally)


@pytest.mark.fault("killed between two operations")
@pytest.mark.parametrize("model", MODELS)
def test_sigkill_at_any_operation_and_then_the_power(model: Model, tmp_path: Path) -> None:
    """The page cache outlives the process; what the next one builds on it must outlive the power."""
    tally = Tally(tmp_path)
    steps = ("create", "two", "one")
    for fault in list(deaths(steps))[:: 3 if model == "posix" else 4]:
        power(tally, steps, model, since="fault", faults=[fault], limit=6)
    assert not tally.violations, said(tally)
    assert tally.faults > 10, said(tally)


@pytest.mark.fault("killed between two operations")
def test_sigkill_and_again_inside_the_recovery_and_then_the_power(tmp_path: Path) -> None:
    """A recovery that is killed is begun again by the next process, with what the first one left."""
    tally = Tally(tmp_path)
    steps = ("create", "two", "one")
    for faults in [*two_deaths(steps)][-RECOVERY::2]:
        power(tally, steps, "posix", since="fault", faults=faults, limit=6)
    assert not tally.violations, said(tally)
    assert tally.faults == RECOVERY // 2, said(tally)


@pytest.mark.fault("failing system call")
def test_a_failed_sync_and_then_the_power(tmp_path: Path) -> None:
    """Whatever a failed sync leaves in the page cache, no effect starts on a line that may not be there."""
    tally = Tally(tmp_path)
    steps = ("create", "two", "one")
    for fault in failing_syncs(steps):
        power(tally, steps, "ext4", since="fault", faults=[fault], limit=6)
    assert not tally.violations, said(tally)
    assert tally.faults == 12, said(tally)


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize("takes", [0, 1, 49, 50, 600, 4096])
def test_a_full_disk_and_then_the_power(tmp_path: Path, takes: int) -> None:
    """The bytes of a line that found no room are not met again, whenever the power goes."""
    tally = Tally(tmp_path)
    for nth in (1, 2):
        power(tally, ("create", "two", "one", "two"), "posix", since="fault", faults=[no_room(nth, takes)], limit=16)
    assert not tally.violations, said(tally)
    assert tally.faults == 2


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize("model", MODELS)
def test_a_full_disk_behind_a_line_that_ends_at_a_sectors_edge_and_then_the_power(model: Model, tmp_path: Path) -> None:
    """A file that is cut there has no zero after its last line, and may show a deleted file's bytes."""
    tally = Tally(tmp_path)
    for takes in (0, 600):
        power(tally, ("create", "edge", "two", "one"), model, since="fault", faults=[no_room(2, takes)], limit=20)
    assert not tally.violations, said(tally)
    assert tally.faults == 2


@pytest.mark.fault("full disk in a roll")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("step", ["roll", "snapshot"])
def test_a_roll_that_finds_no_room_behind_a_sectors_edge_and_then_the_power(
    model: Model, step: str, tmp_path: Path
) -> None:
    """The segment that could not be sealed keeps its zeros, so what is written next is torn or whole, never damage."""
    tally = Tally(tmp_path)
    for nth in (1, 2):
        fault = Fault(verbs=("write_some",), name=".tmp-", nth=nth + NEW_FILES, error=errno.ENOSPC)
        power(tally, ("create", "edge", step, "two", "one"), model, since="fault", faults=[fault], limit=40)
    assert not tally.violations, said(tally)
    assert tally.faults == 2


def test_a_sweep_repeats_exactly() -> None:
    """A violation must be found again by the command that its report names, so a sweep leaves nothing to chance."""
    first, again = Tally(), Tally()
    for tally in (first, again):
        power(tally, ("create", "pages"), "posix", limit=24, inside=40)
    assert first.images == again.images
    assert first.cuts == again.cuts


def test_the_command_that_a_report_names_repeats_the_sweep() -> None:
    """It prints the same figures that the sweep found."""
    tally = Tally()
    power(tally, ("create", "one"), "ext4", limit=8)
    command = [sys.executable, "-m", "tests.eventlog.powerloss", "create,one", "--model", "ext4", "--limit", "8"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tally}\n", "")


@pytest.mark.full
@pytest.mark.early
def test_census(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """At least 20,000 distinct images, 0 acknowledged lines lost, 0 false damage, 0 effects without a line."""
    tally, seconds = census.counted_side_by_side(census.pieces(longest=3, inside=120, limit=10), tmp_path)
    record_property(FIGURES, f"{tally}, {seconds:.0f} s")
    assert not tally.violations, said(tally)
    assert len(tally.images) >= 20_000, said(tally)
