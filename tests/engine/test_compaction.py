"""A long run keeps snapshots of its state by itself; they save time, change nothing, and their failing hurts nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
import runner.testing
from eventlog._file_log import FileLog
from replay.events import AttemptMarked, ModelAsked
from runner._runs import load
from tests.support import stage

TURNS = 40
LEAST = 20_000


@runner.tool(effect="reads")
def look(n: int) -> str:
    """Look at something."""
    return f"{n}." * 300


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mebibyte takes a test too long to fill."""
    monkeypatch.setattr(load, "LEAST", LEAST)


def agent(turns: int = TURNS) -> runner.Agent:
    """An agent that looks many times; it stops at a limit before its end, unless `turns` allow it."""
    script: list[Any] = [runner.testing.tool_calls(("look", {"n": n})) for n in range(TURNS)]
    return stage.agent([*script, "seen"], look, limits=runner.Limits(turns=turns))


def interrupted(runs: Path, turns: int = TURNS - 5) -> None:
    """A run that was stopped by its limit."""
    with pytest.raises(runner.errors.TurnLimit):
        runner.start_sync(agent(turns), "look", runs=runs, run="r")


def snapshots(runs: Path) -> list[int]:
    """The lines that a run's snapshots are of."""
    return sorted(int(path.stem.removeprefix("snap-")) for path in (runs / "r").glob("snap-*.json"))


def folded(runs: Path) -> replay.State:
    """The state of all events, whatever a snapshot says."""
    return replay.load(eventlog.store(runs).read("r").lines)


def first_lines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Watch where openings begin to read."""
    seen: list[int] = []
    opened = eventlog.Directory.open

    def watched(*arguments: Any, **options: Any) -> eventlog.Log:
        log: eventlog.Log = opened(*arguments, **options)
        seen.append(log.lines[0].seq)
        return log

    monkeypatch.setattr(eventlog.Directory, "open", watched)
    return seen


def test_a_long_run_compacts_and_a_resume_begins_after_the_last_snapshot(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is the one that all events fold to, and the run ends as if nothing had been."""
    interrupted(runs)
    last = snapshots(runs)[-1]
    assert runner.read_state("r", runs) == folded(runs)
    begun = first_lines(monkeypatch)
    assert stage.finished(runner.resume_sync("r", agent(TURNS + 5), runs=runs)) == "seen"
    assert begun == [last + 1]
    assert runner.read_state("r", runs) == folded(runs)
    assert len(stage.results(runs)) == TURNS
    assert eventlog.store(runs).verify("r").ok


def test_a_snapshot_is_of_a_line_with_nothing_in_flight(runs: Path) -> None:
    """What is about to happen is written after it, so that a death while it is made leaves nothing open."""
    interrupted(runs)
    for cache in eventlog.store(runs).verify("r").snapshots:
        lines = eventlog.store(runs).read("r").lines[: cache.seq + 1]
        assert not replay.load(lines).busy
        assert not any(isinstance(replay.decode(raw), ModelAsked) for raw in lines[-1].events)


def test_snapshots_cost_a_constant_factor_of_the_log(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is made when the lines since the last weigh as much as that one did, however long the run."""
    sizes: list[int] = []
    compact = FileLog.compact

    def counted(log: FileLog, *given: Any, **options: Any) -> eventlog.Snapshot | None:
        made = compact(log, *given, **options)
        assert made is not None
        sizes.append(made.size)
        return made

    monkeypatch.setattr(FileLog, "compact", counted)
    monkeypatch.setattr(load, "LEAST", 2_000)
    interrupted(runs)
    assert len(sizes) > 3
    assert sum(sizes) < 3 * len(stage.written(runs))


@pytest.mark.parametrize("error", [eventlog.DiskFull("r", "no space"), eventlog.DiskFailed("snap", "I/O error")])
def test_a_compaction_that_finds_no_room_does_not_hurt_the_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch, error: eventlog.LogError
) -> None:
    """It is tried again, but not at every turn: each try costs a line of its own."""
    tries: list[int] = []

    def full(log: eventlog.Log, *_: object, **__: object) -> None:
        tries.append(log.seq)
        raise error

    monkeypatch.setattr(FileLog, "compact", full)
    assert stage.finished(runner.start_sync(agent(TURNS + 5), "look", runs=runs, run="r")) == "seen"
    assert 1 <= len(tries) <= len(stage.written(runs)) // LEAST
    assert snapshots(runs) == []


def test_a_roll_that_fails_ends_the_life_and_the_results_are_on_disk(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead writer starts no further effect; what had come back was saved before."""

    def broken(log: eventlog.Log, *_: object, **__: object) -> None:
        raise eventlog.LogDead(log.run, "a roll failed: I/O error")

    monkeypatch.setattr(FileLog, "compact", broken)
    with pytest.raises(eventlog.LogDead):
        runner.start_sync(agent(), "look", runs=runs, run="r")
    monkeypatch.undo()
    state = runner.read_state("r", runs)
    assert not state.busy
    assert state.in_doubt == ()
    assert {marked.call for marked in stage.events(runs, AttemptMarked)} == set(stage.results(runs))


def _spoil(runs: Path) -> Iterator[None]:
    for path in sorted((runs / "r").glob("snap-*.json"), reverse=True):
        path.write_bytes(path.read_bytes().replace(b'"turns":', b'"TURNS":'))
        yield


@pytest.mark.fault("bad snapshot")
def test_a_rotten_snapshot_is_passed_over(runs: Path) -> None:
    """Then the one before it counts, then the log alone."""
    interrupted(runs)
    assert len(snapshots(runs)) == 2
    for _ in _spoil(runs):
        assert runner.read_state("r", runs) == folded(runs)
    assert stage.finished(runner.resume_sync("r", agent(TURNS + 5), runs=runs)) == "seen"


@pytest.mark.fault("bad snapshot")
def test_a_snapshot_of_another_fold_is_passed_over(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an upgrade the same lines may mean another state."""
    interrupted(runs)
    whole = runner.read_state("r", runs)
    monkeypatch.setattr(replay, "FOLD_VERSION", replay.FOLD_VERSION + 1)
    begun = first_lines(monkeypatch)
    assert runner.read_state("r", runs) == whole
    assert stage.finished(runner.resume_sync("r", agent(TURNS + 5), runs=runs)) == "seen"
    assert begun == [0]


def test_a_snapshot_whose_state_is_of_another_line_is_passed_over(runs: Path) -> None:
    """Whoever made it gave the log a state that it was not made of; events would be missing for ever."""
    interrupted(runs)
    state = folded(runs)
    with eventlog.store(runs).open("r") as log:
        log.compact(replay.dump(replay.NEW), replay.FOLD_VERSION)
    read = runner.read_state("r", runs)
    assert (read.messages, read.turns) == (state.messages, state.turns)


def test_a_snapshot_with_events_that_were_unknown_is_passed_over(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its maker could not fold them; whoever opens the run may be the version that can."""
    interrupted(runs)
    with eventlog.store(runs).open("r") as log:
        log.append(log.at, [b'{"type":"of_a_later_version"}'])
        log.compact(replay.dump(replay.load(eventlog.store(runs).read("r").lines)), replay.FOLD_VERSION)
    begun = first_lines(monkeypatch)
    with pytest.raises(runner.errors.CannotContinue):
        runner.resume_sync("r", agent(), runs=runs)
    assert begun[0] < log.seq - 1
    assert runner.read_state("r", runs).unknown == ("of_a_later_version",)


def test_an_answer_and_a_stop_begin_after_a_snapshot(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They write one event and fold nothing twice."""
    interrupted(runs)
    begun = first_lines(monkeypatch)
    assert runner.stop("r", "ann", runs=runs).state.stopped is not None
    assert begun == [snapshots(runs)[-1] + 1]
    assert runner.read_state("r", runs) == folded(runs)
