"""With any one safeguard taken out, a sweep or a test of a fault goes red; with all of them in, none does.

Each row names the safeguard, how it is taken out, and what must notice. A row that stays green would mean that the
safeguard is not needed, or that nothing here can see that it is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import eventlog
from tests.eventlog.ablations import removed, sweeps, writers
from tests.eventlog.powerloss.sweep import Tally, Wrap, plain


class Row(NamedTuple):
    """A safeguard: `wrap` or `patch` takes it out, `noticed_by` goes red, in words that match `says`."""

    safeguard: str
    noticed_by: Callable[[Wrap], str]
    says: str
    wrap: Wrap = plain
    patch: Callable[[pytest.MonkeyPatch], None] = lambda _patch: None


def by(sweep: sweeps.Sweep) -> Callable[[Wrap], str]:
    """Make a sweep into a question."""
    return lambda wrap: sweeps.first_violation(sweep, wrap)


def later(disk: eventlog.Disk) -> eventlog.Disk:
    """Take the sync of the segment's name out of every process but the first, which makes the run."""
    return removed.NoNameSync(disk) if disk.pid() > 1 else disk


POWER, DEATH = by(sweeps.a_power_cut), by(sweeps.a_death_and_then_a_power_cut)
FAILED, FULL = by(sweeps.a_failed_sync_and_then_a_power_cut), by(sweeps.a_full_disk_and_then_a_power_cut)
ROLL = by(sweeps.a_roll_and_then_a_power_cut)
LOST, DAMAGE = "an effect was started on line", "false damage"

ROWS = (
    Row("a save is synced", POWER, LOST, removed.NoDatasync),
    Row(
        "the head is written after the sync",
        POWER,
        "the head says that line 2 was acknowledged",
        removed.HeadBeforeSync,
    ),
    Row("create: the directory is synced before the head claims", POWER, DAMAGE, removed.NoNameSync),
    Row("open: the head claims nothing before the directory is synced", DEATH, DAMAGE, later, removed.claims_at_once),
    Row("open: the head says open, durably, before the first save", POWER, DAMAGE, patch=removed.stays_closed),
    Row("the run's directory is synced", DEATH, f"{DAMAGE}|the run is gone", removed.NoDirectorySync),
    Row("the directory of runs is synced", POWER, "the run is gone", removed.NoParentSync),
    Row("a file is synced before it gets its name", POWER, DAMAGE, removed.RenameBeforeSync),
    Row("a failed sync is not tried again", FAILED, LOST, removed.RetriedSync),
    Row("after an unclean end the segment is rewritten", FAILED, LOST, patch=removed.same_file),
    Row("evidence is a copy, not a link", DEATH, "evidence", patch=removed.linked_evidence),
    Row("evidence is kept", DEATH, "evidence", patch=removed.no_evidence),
    Row("evidence is durable before the cut", DEATH, "evidence", patch=removed.unsynced_evidence),
    Row("the cut is synced before the head says closed", POWER, "the log is not closed", removed.CutNotSynced),
    Row(
        "the cut is synced before the next segment has a name",
        ROLL,
        "after the end of a sealed segment",
        removed.CutNotSynced,
    ),
    Row("the next segment's name is durable before a line is in it", ROLL, LOST, removed.NoRollSync),
    Row("a snapshot is durable before it has its name", ROLL, "snapshot", patch=removed.unsynced_snapshot),
    Row("a rollback is synced", FULL, "torn bytes, and no save was in flight", removed.RollbackNotSynced),
    Row("zeros are synced before a line is written over them", POWER, DAMAGE, removed.ZerosNotSynced),
    Row("the lock is taken", writers.a_second_opener, "a second process opened", removed.NoLock),
    Row(
        "a writer checks its lock and its file",
        writers.a_writer_that_lost_its_lock,
        "acknowledged",
        patch=removed.no_guard,
    ),
)


@pytest.mark.unmeasured
@pytest.mark.parametrize("row", ROWS, ids=[row.safeguard for row in ROWS])
def test_without_it_something_goes_red(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each safeguard is there because leaving it out loses or invents something, and something here sees that."""
    row.patch(monkeypatch)
    assert re.search(row.says, row.noticed_by(row.wrap))


@pytest.mark.unmeasured
@pytest.mark.parametrize("noticed_by", dict.fromkeys(row.noticed_by for row in ROWS), ids=range(7))
def test_with_everything_in_place_nothing_is_red(noticed_by: Callable[[Wrap], str]) -> None:
    """The control: what notices the missing safeguards has nothing to say about the log as it is."""
    assert noticed_by(plain) == ""


@pytest.mark.full
def test_half_of_the_head_rule_is_not_enough_to_go_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that claims at once is harmless after the directory's sync: the row above is red for the order alone."""
    removed.claims_at_once(monkeypatch)
    assert DEATH(plain) == ""


def test_a_violation_is_kept_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    """What fails can be looked at: the image's tree, opened like any run, and how it came about."""
    tally = Tally(tmp_path)
    assert sweeps.first_violation(sweeps.a_power_cut, removed.NoDatasync, tally)
    (kept,) = tmp_path.iterdir()
    assert str(kept) in tally.violations[0]
    report = (kept / "REPORT").read_text()
    assert "repeat: python -m tests.eventlog.powerloss create,two,one --model ext4 --limit 64\n" in report
    assert "wrote 256 bytes at 0 of /runs/r/head" in report
    assert len(eventlog.store(kept / "disk/runs").read("r").lines) == 2
