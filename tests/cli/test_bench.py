"""`refold bench`: it says what was measured, refuses where nothing would be, and leaves nothing behind."""

from pathlib import Path

import pytest

import eventlog
from runner._cli._commands import bench
from tests.cli.conftest import Refold


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every directory stand on a disk, as the table of mounts says it."""
    monkeypatch.setattr(eventlog.Disk, "mounts", lambda _: "1 0 0:1 / / rw - ext4 /dev/vda rw\n")


@pytest.mark.usefixtures("on")
def test_both_ways_are_measured_and_nothing_stays(refold: Refold, runs: Path) -> None:
    """The figures are those of a user's own directory, which looks afterwards as it did before."""
    said = refold("bench", "--saves", "10", "--json").ends(0)
    figures = said.json
    assert (figures["saves"], figures["rounds"], figures["storage"]) == (10, bench.ROUNDS, "ext4")
    assert figures["flushes"] == 1
    assert 0 < figures["append_p50"] <= figures["append_p99"]
    assert 0 < figures["snapshot_p50"] <= figures["snapshot_p99"]
    assert figures["times"] > 0
    assert not runs.exists()


@pytest.mark.usefixtures("on")
def test_a_person_reads_what_a_save_costs_and_other_runs_stay(refold: Refold, runs: Path) -> None:
    """The sentence comes first, and what else is in the directory is nobody's business here."""
    (runs / "other").mkdir(parents=True)
    said = refold("bench", "--saves", "10")
    assert said.out.startswith("On your disk, a save costs ")
    assert "times as much" in said.out
    assert eventlog.store(runs).names() == ["other"]


def test_a_directory_in_memory_is_refused(refold: Refold, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a flush costs nothing, and the figure would be a lie."""
    monkeypatch.setattr(eventlog.Disk, "mounts", lambda _: "1 0 0:1 / / rw - tmpfs tmpfs rw\n")
    refold("bench").ends(1, err="tmpfs")
    assert not runs.exists()
