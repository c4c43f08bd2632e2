"""A request reaches a run that a process holds, whatever the run does at that moment, and what is in flight may end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
from replay.events import (
    PhaseChanged,
    QuestionAnswered,
    ReplySaved,
    RequestRefused,
    ResultRecorded,
    RunStopped,
    WaitUntil,
)
from runner._engine.bell import Bell
from runner._engine.mailbox import AT_ONCE, POLL, Mailbox
from runner.testing import tool_calls
from tests.support import stage

ACT = tool_calls(("act", {}))


def begin(agent: runner.Agent, runs: Path, **options: Any) -> asyncio.Task[runner.Outcome]:
    """A run in a task of its own."""
    return asyncio.ensure_future(runner.start(agent, stage.TASK, runs=runs, run="r", **options))


def logged(runs: Path, kind: type[replay.Event]) -> int:
    """How many events of a kind the log has; the run may be in the making."""
    try:
        return len(stage.events(runs, kind))
    except (eventlog.NoSuchRun, eventlog.NotARunsDirectory):
        return 0


@pytest.mark.parametrize(("say", "reason"), [(runner.stop, "StoppedByPerson"), (runner.park, "Parked")])
def test_what_is_in_flight_ends_first_and_its_outcome_stands_before_the_stop_in_one_line(
    runs: Path, say: Any, reason: str
) -> None:
    """Nobody is asked about a call that was let end."""

    async def go() -> None:
        begun, end = asyncio.Event(), asyncio.Event()

        @runner.tool
        async def act() -> str:
            begun.set()
            await end.wait()
            return "acted"

        running = begin(stage.agent([ACT, "over"], act), runs)
        await begun.wait()
        receipt = await asyncio.to_thread(say, "r", "ann", runs=runs)
        assert not receipt.written
        with pytest.raises(runner.errors.NotStoppable, match="ann"):
            await asyncio.to_thread(say, "r", "bob", runs=runs)
        await asyncio.sleep(2 * POLL)  # nothing outside says that it was noticed
        end.set()
        with pytest.raises(runner.Stopped, match="by ann") as stopped:
            await running
        assert stopped.value.reason == reason

    asyncio.run(go())
    assert [type(event) for event in stage.lines(runs)[-1]] == [ResultRecorded, RunStopped]
    assert runner.read_state("r", runs).in_doubt == ()


def test_what_does_not_end_within_grace_is_cut_off_and_in_doubt(runs: Path) -> None:
    """As after a signal."""

    async def go() -> None:
        begun = asyncio.Event()

        @runner.tool
        async def act() -> None:
            begun.set()
            await asyncio.Event().wait()

        running = begin(stage.agent([ACT], act), runs, grace=0.05)
        await begun.wait()
        await asyncio.to_thread(runner.stop, "r", "ann", runs=runs)
        with pytest.raises(runner.errors.StoppedByPerson):
            await running

    asyncio.run(go())
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


@pytest.mark.fault("a late request that nobody takes")
def test_a_thread_that_outlives_its_cut_off_takes_what_was_asked_for_meanwhile(runs: Path) -> None:
    """It holds the run's lock until it ends; then it looks once more."""
    end = threading.Event()

    async def go() -> None:
        begun = threading.Event()

        @runner.tool
        def act() -> None:
            begun.set()
            end.wait(20)

        running = begin(stage.agent([ACT], act), runs, grace=0.05)
        await asyncio.to_thread(begun.wait)
        await asyncio.to_thread(runner.park, "r", "ann", runs=runs)
        with pytest.raises(runner.errors.Parked):
            await running
        assert not (await asyncio.to_thread(runner.stop, "r", "bob", runs=runs)).written

    asyncio.run(go())
    assert not runner.read_state("r", runs).over
    end.set()
    stage.within(20, lambda: runner.read_state("r", runs).over)


def test_a_thousand_lives_are_looked_for_a_few_in_each_turn_of_the_loop(runs: Path) -> None:
    """All of them in one turn would keep the loop for 10 ms, four times a second."""
    turn, looked = [0], dict[int, int]()

    async def go() -> None:
        loop, all_were, bell = asyncio.get_running_loop(), asyncio.Event(), Bell()

        def count() -> None:
            turn[0] += 1
            loop.call_soon(count)

        def inbox(number: int) -> list[str]:
            looked[number] = turn[0]
            if len(looked) == 5 * AT_ONCE:
                all_were.set()
            return []

        with contextlib.ExitStack() as stack:
            for number in range(5 * AT_ONCE):
                log = stack.enter_context(eventlog.store(runs).create(f"r{number}", at=stage.NOON, events=[b"{}"]))
                log.inbox = functools.partial(inbox, number)  # type: ignore[method-assign] # as the log's own, counted
                stack.enter_context(Mailbox(log).noticed(bell))
            count()
            await all_were.wait()

    asyncio.run(go())
    assert max(Counter(looked.values()).values()) <= AT_ONCE


def test_a_reply_that_ends_the_run_is_its_end_and_a_stop_is_refused(runs: Path) -> None:
    """It was paid for, and it is the answer."""

    async def go() -> None:
        begun, end = asyncio.Event(), asyncio.Event()

        async def reply(_: Any) -> runner.Reply:
            begun.set()
            await end.wait()
            return runner.Reply(text="over")

        agent = stage.agent([], name="agent")
        agent.model.ask = reply  # type: ignore[method-assign, assignment] # a model that waits
        running = begin(agent, runs)
        await begun.wait()
        await asyncio.to_thread(runner.stop, "r", "ann", runs=runs)
        end.set()
        assert stage.finished(await running) == "over"

    asyncio.run(go())
    assert [type(event) for event in stage.lines(runs)[-1]] == [ReplySaved, RequestRefused, PhaseChanged]


def test_a_run_that_waits_for_a_time_is_parked_at_once(runs: Path) -> None:
    """A wait of an hour is no reason to wait for an hour."""

    async def go() -> None:
        @runner.tool(attempts=9)
        async def act() -> None:
            raise runner.ToolFailed("not now", retry_after=3600.0)

        running = begin(stage.agent([ACT], act), runs)
        await asyncio.to_thread(stage.within, 20, lambda: logged(runs, WaitUntil))
        await asyncio.to_thread(runner.park, "r", "ann", runs=runs)
        async with asyncio.timeout(5):
            with pytest.raises(runner.errors.Parked):
                await running

    asyncio.run(go())


@pytest.mark.parametrize("both", [False, True])
def test_an_answer_from_outside_comes_before_one_that_is_still_awaited(runs: Path, *, both: bool) -> None:
    """The first answer counts; the hook is not waited for any more."""

    async def go() -> None:
        @runner.tool(approval=True)
        async def act() -> str:
            return "acted"

        asked = asyncio.Event()

        async def hook(_: runner.Question) -> runner.Answer | None:
            asked.set()
            if both:
                await asyncio.to_thread(runner.approve, "r", "1.0-approve", "ann", runs=runs)
                return runner.Answer("refuse", "bob")
            await asyncio.Event().wait()
            return None

        running = begin(stage.agent([ACT, "over"], act), runs, on_question=hook)
        await asked.wait()
        if not both:
            await asyncio.to_thread(runner.approve, "r", "1.0-approve", "ann", runs=runs)
        async with asyncio.timeout(5):
            assert stage.finished(await running) == "over"

    asyncio.run(go())
    assert [answer.who for answer in stage.events(runs, QuestionAnswered)] == ["ann"]


@pytest.mark.fault("one slow call keeps finished ones unsaved")
def test_each_outcome_is_saved_when_it_comes_and_not_with_the_slowest(runs: Path) -> None:
    """A crash while one call hangs must not lose what seven others had returned."""

    async def go() -> None:
        end = asyncio.Event()

        @runner.tool(effect="reads")
        async def look(n: int) -> int:
            if n == 0:
                await end.wait()
            return n

        calls = tool_calls(*(("look", {"n": n}) for n in range(8)))
        running = begin(stage.agent([calls, "over"], look), runs)

        def seven() -> bool:
            return logged(runs, ResultRecorded) == 7

        await asyncio.to_thread(stage.within, 20, seven)
        end.set()
        assert stage.finished(await running) == "over"

    asyncio.run(go())
    assert len(stage.lines(runs)) <= 6, "what is ready together shares a line"
