"""Cancellation: what had returned is kept, what was cut off is open, nothing else reruns."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import AttemptEnded, AttemptMarked, QuestionAnswered, RunStopped
from replay.values import Effect
from tests.support import stage

pytestmark = [pytest.mark.fault("cancellation")]

ACT = [runner.testing.tool_calls(("act", {})), "over"]
FOREVER = 60.0


class Gate:
    """Something that was begun and does not end by itself."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.times = 0

    async def wait(self) -> None:
        """Say that it has begun, and wait."""
        self.times += 1
        self.begun.set()
        await asyncio.sleep(FOREVER)


async def cancelled(running: Awaitable[object], gate: Gate, times: int = 1) -> None:
    """Cancel a run as soon as the gate was reached."""
    task = asyncio.ensure_future(running)
    await asyncio.wait_for(gate.begun.wait(), 20)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task


def interrupted(runs: Path, body: Callable[[Gate], Awaitable[object]], times: int = 1) -> None:
    """Run `body` up to its gate and cancel it there; its log must say so."""

    async def main() -> None:
        gate = Gate()
        await cancelled(body(gate), gate, times)

    asyncio.run(main())
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert state.stopped.reason == "Interrupted"


def keyed(gate: Gate) -> runner.Tool:
    """An async tool that waits at the gate."""

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1))
    async def act() -> str:
        await gate.wait()
        return "never"

    return act


def resumed(runs: Path, *tools: runner.Tool, **options: Any) -> object:
    """Resume the run."""
    return runner.resume_sync("r", stage.agent(ACT, *tools), runs=runs, **options)


@pytest.mark.parametrize("times", [1, 2])
def test_a_call_that_was_cut_off_is_open_and_settled_after_the_resume(runs: Path, times: int) -> None:
    """Its attempt has no outcome; the next life finds the marker, and a repeat under the key is harmless."""
    interrupted(runs, lambda gate: runner.start(stage.agent(ACT, keyed(gate)), stage.TASK, runs=runs, run="r"), times)
    assert runner.read_state("r", runs).in_doubt == ("1.0",)
    keys: list[str] = []

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1))
    def act(call: runner.Call) -> str:
        keys.append(call.key)
        return "done"

    assert stage.finished(resumed(runs, act)) == "over"
    assert keys == [stage.events(runs, AttemptMarked)[0].key]


@pytest.mark.parametrize("effect", ["reads", "non_idempotent"])
def test_a_loop_that_is_torn_down_under_the_run_cuts_its_call_off(runs: Path, effect: Effect) -> None:
    """A second signal makes asyncio cancel every task, in any order: no outcome of the call, not even of a read."""

    async def body() -> None:
        gate = Gate()

        @functools.partial(runner.Tool, effect=effect)
        async def act() -> str:
            await gate.wait()
            return "never"

        running = asyncio.ensure_future(runner.start(stage.agent(ACT, act), stage.TASK, runs=runs, run="r"))
        await asyncio.wait_for(gate.begun.wait(), 20)
        for task in asyncio.all_tasks() - {running, asyncio.current_task()}:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(body())
    assert stage.events(runs, AttemptEnded) == []
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


def test_a_reply_that_was_cut_off_is_lost_and_asked_for_again(runs: Path) -> None:
    """The ask went out, so its bound counts as spent."""

    class Slow(runner.testing.ScriptedModel):
        gate: Gate

        async def ask(self, request: runner.Request) -> runner.Reply:
            await self.gate.wait()
            return await super().ask(request)

    def body(gate: Gate) -> Awaitable[object]:
        model = Slow(["x"])
        model.gate = gate
        return runner.start(runner.Agent(name="agent", model=model), stage.TASK, runs=runs, run="r")

    interrupted(runs, body)
    assert stage.finished(runner.resume_sync("r", stage.agent(["x"]), runs=runs)) == "x"
    spent = runner.read_state("r", runs).spent
    assert (spent.lost_asks, spent.lost_dollars) == (1, 0.01)


def test_in_a_wave_what_had_returned_is_kept(runs: Path) -> None:
    """Only the read that was cut off runs again."""
    ran: list[str] = []

    def tools(gate: Gate | None) -> list[runner.Tool]:
        @runner.tool(effect="reads")
        async def quick() -> str:
            ran.append("quick")
            return "quick"

        @runner.tool(effect="reads")
        async def slow() -> str:
            ran.append("slow")
            if gate is not None:
                await gate.wait()
            return "slow"

        return [quick, slow]

    script = [runner.testing.tool_calls(("quick", {}), ("slow", {})), "over"]
    interrupted(runs, lambda gate: runner.start(stage.agent(script, *tools(gate)), stage.TASK, runs=runs, run="r"))
    assert set(stage.results(runs)) == {"1.0"}
    assert stage.finished(runner.resume_sync("r", stage.agent(script, *tools(None)), runs=runs)) == "over"
    assert ran == ["quick", "slow", "slow"]


def test_a_wait_that_was_cut_off_goes_on_after_the_resume(runs: Path) -> None:
    """The moment it waits for is in the log, so a restart neither shortens nor lengthens it."""
    fails = True

    def once() -> runner.Tool:
        @runner.tool
        def act() -> str:
            if fails:
                raise runner.ToolFailed("busy", retry_after=30)
            return "done"

        return act

    class Waiting(stage.Ticking):
        gate: Gate

        async def sleep(self, _seconds: float) -> None:
            await self.gate.wait()

    def body(gate: Gate) -> Awaitable[object]:
        clock = Waiting()
        clock.gate = gate
        return runner.start(stage.agent(ACT, once()), stage.TASK, runs=runs, run="r", clock=clock)

    interrupted(runs, body)
    fails = False
    clock = stage.Ticking(stage.NOON + timedelta(seconds=12))
    assert stage.finished(runner.resume_sync("r", stage.agent(ACT, once()), runs=runs, clock=clock)) == "over"
    assert clock.slept == [18.0]


def test_a_hook_that_was_cut_off_leaves_its_question_open(runs: Path) -> None:
    """Nobody has answered, and the next look writes nothing."""

    @runner.tool(approval=True)
    def act() -> str:
        return "done"

    def body(gate: Gate) -> Awaitable[object]:
        async def hook(_question: runner.Question) -> None:
            await gate.wait()

        return runner.start(stage.agent(ACT, act), stage.TASK, runs=runs, run="r", on_question=hook)

    interrupted(runs, body)
    before = stage.written(runs)
    (question,) = stage.asked(resumed(runs, act))
    assert stage.written(runs) == before
    runner.approve("r", question.id, "olga", runs=runs)
    assert stage.finished(resumed(runs, act)) == "over"


@pytest.mark.parametrize("late", [False, True], ids=["alone", "another person answers at the same moment"])
def test_an_answer_of_a_hook_that_was_cut_off_at_its_next_question_counts_once(runs: Path, *, late: bool) -> None:
    """The stop goes on from the state that has the answer: no second one is written, and no list calls it open."""

    @runner.tool(approval=True)
    def act(n: int) -> str:
        return f"did {n}"

    agent = stage.agent([runner.testing.tool_calls(("act", {"n": 1}), ("act", {"n": 2})), "over"], act)

    def second(_state: replay.State, events: Sequence[object]) -> None:
        """Who posts this has read the run before the line that was just written."""
        if late and any(isinstance(event, QuestionAnswered) for event in events):
            request = {"kind": "answer", "who": "bob", "verdict": "refuse", "question": "1.0-approve", "post": "m" * 16}
            eventlog.store(runs).post("r", "answer-1.0-approve", msgspec.json.encode(request))

    async def body(gate: Gate) -> object:
        async def no_answer() -> None:
            await gate.wait()

        def hook(question: replay.Question) -> runner.Answer | Awaitable[None]:
            return runner.Answer("approve", "ann") if question.id == "1.0-approve" else no_answer()

        return await runner.start(agent, stage.TASK, runs=runs, run="r", on_question=hook, watch=second)

    interrupted(runs, body)
    assert [(e.id, e.answer, e.who) for e in stage.events(runs, QuestionAnswered)] == [
        ("1.0-approve", "approve", "ann")
    ]
    (info,) = runner.list_runs(runs=runs)
    assert info.status is not None
    assert info.status.open_questions == ("1.1-approve",)
    assert (
        stage.finished(runner.resume_sync("r", agent, runs=runs, on_question=lambda _: runner.Answer("approve", "ann")))
        == "over"
    )


def test_cancelling_twice_does_not_wait_for_what_does_not_end(runs: Path) -> None:
    """The first lets what is in flight come to its end for a moment, the second not even that."""
    release = asyncio.Event()

    async def main() -> float:
        gate = Gate()

        @runner.tool
        async def act() -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()
            await release.wait()
            return "late"

        begun = time.monotonic()
        await cancelled(runner.start(stage.agent(ACT, act), stage.TASK, runs=runs, run="r"), gate, times=3)
        took = time.monotonic() - begun
        release.set()
        return took

    assert asyncio.run(main()) < 0.9
    assert runner.read_state("r", runs).in_doubt == ("1.0",)
    assert stage.results(runs) == {}


def test_what_was_cut_off_and_still_runs_cannot_write_after_the_stop(runs: Path, place: Path) -> None:
    """A parked life writes nothing more: a line after the stop would make the log unreadable for ever."""
    go, tried = asyncio.Event(), list[str]()

    async def main() -> None:
        gate = Gate()
        over = asyncio.Event()

        @runner.tool
        async def act(call: runner.Call) -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await gate.wait()
            watched.append(call.workspace)
            await go.wait()
            over.set()
            return "late"

        watched: list[runner.Workspace] = []

        def watch(_state: runner.State, events: Sequence[replay.Event]) -> None:
            if any(isinstance(event, RunStopped) for event in events):
                try:
                    watched[0].write_text("late.txt", "mine")
                except runner.errors.ReadOnlyWorkspace as error:
                    tried.append(str(error))

        running = runner.start(stage.agent(ACT, act), stage.TASK, runs=runs, run="r", workspace=place, watch=watch)
        await cancelled(running, gate, times=3)
        go.set()
        await over.wait()

    asyncio.run(main())
    assert len(tried) == 1
    assert list(place.iterdir()) == []
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


def test_a_tool_that_was_cut_off_may_still_say_how_it_ended(runs: Path) -> None:
    """One that cleans up in its moment and is certain that nothing happened is believed."""

    def body(gate: Gate) -> Awaitable[object]:
        @runner.tool
        async def act() -> str:
            try:
                await gate.wait()
            except asyncio.CancelledError:
                raise runner.ToolFailed("rolled back") from None
            return "never"

        return runner.start(stage.agent(ACT, act), stage.TASK, runs=runs, run="r")

    interrupted(runs, body)
    assert [event.did for event in stage.events(runs, AttemptEnded)] == ["nothing"]
    assert runner.read_state("r", runs).in_doubt == ()


def test_a_run_cancelled_before_it_began_does_not_exist(runs: Path) -> None:
    """Nothing was paid, nothing is left."""

    async def main() -> None:
        task = asyncio.ensure_future(runner.start(stage.agent(["x"]), stage.TASK, runs=runs, run="r"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not runs.exists()


def test_runs_of_one_loop_are_cancelled_one_by_one(runs: Path) -> None:
    """Each has its own log and its own end."""

    async def main() -> object:
        gate = Gate()
        other = runner.start(stage.agent(["fine"]), stage.TASK, runs=runs, run="other")
        running = runner.start(stage.agent(ACT, keyed(gate)), stage.TASK, runs=runs, run="r")
        _, outcome = await asyncio.gather(cancelled(running, gate), other)
        return outcome

    assert stage.finished(asyncio.run(main())) == "fine"
    assert runner.read_state("r", runs).in_doubt == ("1.0",)
