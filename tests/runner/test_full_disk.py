"""A full disk: the marker is refused and not the result; where the result is refused, the call is open (design)."""

from __future__ import annotations

from pathlib import Path

import replay
import runner
from tests.runner import stage
from tests.runner.stagehand import Stagehand


def test_a_full_disk_refuses_the_marker_and_no_result_is_lost(stagehand: Stagehand, runs: Path, tmp_path: Path) -> None:
    """Room for the result was laid and synced before the marker, so whatever ran has its result on disk."""
    ran = tmp_path / "ran"
    assert stagehand.play("fills_the_disk", runs=runs, ran=ran).value == "DiskFull"
    calls = ran.read_text().split()
    assert 5 < len(calls) < 30
    assert [marked.call for marked in stage.events(runs, replay.AttemptMarked)] == calls
    assert list(stage.results(runs)) == calls
    assert stagehand.play("fills_the_disk", runs=runs, ran=ran, full=False).value == "over"
    assert len(set(ran.read_text().split())) == len(ran.read_text().split())


def test_a_result_that_finds_no_room_leaves_its_call_open(stagehand: Stagehand, runs: Path) -> None:
    """One larger than the room: the caller gets the error, never the result, and a resume climbs the ladder."""
    assert stagehand.play("returns_too_much", runs=runs).value == "DiskFull"
    assert runner.read("r", runs).open == ("1.0",)
    assert stage.results(runs) == {}
    assert stagehand.play("returns_too_much", runs=runs, full=False).value == "Paused"


def test_a_write_that_cannot_be_logged_does_not_happen(stagehand: Stagehand, runs: Path, place: Path) -> None:
    """The coming hash is durable first; without it, the file stays as it was."""
    assert stagehand.play("writes_too_much", runs=runs, place=place).value == ["DiskFull", "Paused"]
    assert (place / "a.txt").read_text() == "old"
    assert [path.name for path in place.iterdir()] == ["a.txt"]
