"""A full disk: the marker is refused and not the result; where the result is refused, the call is open."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import runner
from replay.events import AttemptMarked
from tests.engine import scenes_disk
from tests.support import stage
from tests.support.forkserver import ForkServer


@pytest.mark.parametrize(("each", "size"), [(1, 6_000), (3, 60_000)], ids=["a call in a reply", "a call follows"])
def test_a_full_disk_refuses_the_marker_and_no_result_is_lost(
    forks: ForkServer, runs: Path, tmp_path: Path, each: int, size: int
) -> None:
    """Room for the result was laid and synced before the marker, so whatever ran has its result on disk.

    So it is where the next call's marker would have shared the line of the result.
    """
    ran = tmp_path / "ran"
    fills = functools.partial(forks.run, scenes_disk.fills_the_disk, runs=runs, ran=ran, each=each, size=size)
    assert fills().value == "DiskFull"
    calls = ran.read_text().split()
    assert 5 < len(calls) < 30
    assert [marked.call for marked in stage.events(runs, AttemptMarked)] == calls
    assert list(stage.results(runs)) == calls
    assert fills(full=False).value == "over"
    assert len(set(ran.read_text().split())) == len(ran.read_text().split())


def test_a_result_that_finds_no_room_leaves_its_call_open(forks: ForkServer, runs: Path) -> None:
    """One larger than the room: the caller gets the error, never the result, and a resume climbs the ladder."""
    assert forks.run(scenes_disk.returns_too_much, runs=runs).value == "DiskFull"
    assert runner.read_state("r", runs).in_doubt == ("1.0",)
    assert stage.results(runs) == {}
    assert forks.run(scenes_disk.returns_too_much, runs=runs, full=False).value == "Paused"


def test_a_write_that_cannot_be_logged_does_not_happen(forks: ForkServer, runs: Path, place: Path) -> None:
    """The coming hash is durable first; without it, the file stays as it was."""
    assert forks.run(scenes_disk.writes_too_much, runs=runs, place=place).value == ["DiskFull", "Paused"]
    assert (place / "a.txt").read_text() == "old"
    assert [path.name for path in place.iterdir()] == ["a.txt"]
