"""Who makes a run due rings, and a worker that hears it takes it: nobody waits for the next look at all runs."""

import asyncio
import errno
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import RunResumed, WaitUntil
from runner._service import worker as workers
from tests.service import scenes
from tests.support import stage


@pytest.fixture(autouse=True)
def _deaf_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker looks at all runs a second time."""
    monkeypatch.setattr(workers, "LOOK", 1000.0)
    monkeypatch.setattr(workers, "OTHERS", 1000.0)


def carried(runs: Path, agent: runner.Agent, *, first: list[str], then: object) -> list[str]:
    """Have a worker do what there is, then what `then` makes due; how `r` ends, and which runs it was told about."""

    async def main() -> None:
        async with runner.Worker([agent], runs=runs) as worker:
            for name in first:
                await (await worker.start(agent, stage.TASK, run=name)).outcome()
            assert callable(then)
            await asyncio.to_thread(then)
            async with asyncio.timeout(120):
                while runner.read_state("r", runs).phase != "done":  # noqa: ASYNC110 (it is in a file)
                    await asyncio.sleep(0.01)

    asyncio.run(main())
    return [event.answer or "" for event in stage.events(runs, replay.events.PhaseChanged) if event.phase == "done"]


def test_an_enqueued_run_is_taken_at_once_and_its_turn_is_not_counted(runs: Path, tmp_path: Path) -> None:
    """Whoever enqueues rings."""
    agent = scenes.acting(tmp_path / "effects")
    ends = carried(runs, agent, first=[], then=lambda: runner.enqueue(agent, stage.TASK, runs=runs, run="r"))
    assert ends == ["over"]
    assert [event.counted for event in stage.events(runs, RunResumed)] == [False]


def test_an_answer_wakes_the_run(runs: Path) -> None:
    """Whoever answers a run that nobody holds writes the answer, and rings."""

    @runner.tool(approval=True)
    def act() -> str:
        return "done"

    agent = stage.agent([scenes.CALL, "over"], act)
    then = lambda: runner.approve("r", "1.0-approve", "olga", runs=runs)  # noqa: E731 (short)
    assert carried(runs, agent, first=["r"], then=then) == ["over"]


def test_what_another_process_gives_back_is_taken_at_once(runs: Path, tmp_path: Path) -> None:
    """Here another worker that leaves."""
    agent = scenes.acting(tmp_path / "effects", lasts=0.2)

    async def leave() -> None:
        async with runner.Worker([agent], runs=runs) as worker:
            await worker.start(agent, stage.TASK, run="r")
            while not scenes.effects_of(tmp_path / "effects"):  # noqa: ASYNC110 (it is in a file)
                await asyncio.sleep(0.01)

    assert carried(runs, agent, first=[], then=lambda: asyncio.run(leave())) == ["over"]
    assert scenes.effects_of(tmp_path / "effects") == ["r"]
    assert [event.counted for event in stage.events(runs, RunResumed)] == [False]


def test_a_wait_that_was_given_back_is_said_and_waited_out_by_whoever_is_there(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run rests meanwhile, its lock is free, and going on is not counted."""
    monkeypatch.setattr("runner._service.carrier.REST", 0.2)

    @runner.tool
    def act(call: runner.Call) -> str:
        if call.n == 1:
            message = "busy"
            raise runner.ToolFailed(message, retry_after=0.7)
        return "done"

    def rests() -> None:
        assert eventlog.store(runs).holder("r") is None

    agent = stage.agent([scenes.CALL, "over"], act)
    assert carried(runs, agent, first=["r"], then=rests) == ["over"]
    assert [event.rested for event in stage.events(runs, WaitUntil)] == [True]
    assert [event.counted for event in stage.events(runs, RunResumed)] == [False]
    assert runner.review.retrace("r", agent, runs=runs).divergence is None


def test_a_fork_and_a_run_that_was_held_for_a_snapshot_are_taken_at_once(runs: Path, tmp_path: Path) -> None:
    """Whoever tried to open the run meanwhile was refused, and would not look again for long."""
    agent = stage.agent(["over"])
    runner.enqueue(agent, stage.TASK, runs=tmp_path / "elsewhere", run="r")

    def compact() -> None:
        (tmp_path / "elsewhere" / "r").rename(runs / "r")  # as if the ring had come to nothing
        runner.compact("r", runs=runs)

    assert carried(runs, agent, first=["other"], then=compact) == ["over"]
    runner.start_sync(agent, stage.TASK, runs=tmp_path / "second", run="p")
    assert carried(
        tmp_path / "second", agent, first=[], then=lambda: runner.fork("p", at=1, runs=tmp_path / "second", new="r")
    )


@pytest.mark.fault("a look at the runs fails once")
@pytest.mark.parametrize(
    "error",
    [
        eventlog.NotARunsDirectory("runs", "gone for a moment"),
        OSError(errno.EMFILE, "too many open files"),
        RuntimeError("can't start new thread"),
    ],
    ids=["log", "system", "program"],
)
def test_a_look_that_fails_ends_neither_the_worker_nor_its_hearing(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What rang is looked at again."""
    agent, statuses = scenes.acting(tmp_path / "effects"), eventlog.Directory.statuses
    errors = list[Exception]()

    def unwell(
        store: eventlog.Directory, among: Iterable[str] | None = None
    ) -> Iterator[tuple[str, bytes | None, bool]]:
        if errors:
            raise errors.pop()
        return statuses(store, among)

    monkeypatch.setattr(eventlog.Directory, "statuses", unwell)

    def enqueue() -> None:
        errors.append(error)
        runner.enqueue(agent, stage.TASK, runs=runs, run="r")

    assert carried(runs, agent, first=["before"], then=enqueue) == ["over"]
    assert not errors
