"""Timeouts: a coroutine is cut off and its call is open; a thread ends by itself, never overtaken (rows 13, 22)."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import replay
import runner
from tests.runner import stage
from tests.runner.stagehand import Stagehand

SHORT = 0.03
ACT = [runner.calls(("act", {})), "over"]
FOREVER = 60.0


def test_an_async_tool_that_times_out_is_repeated_under_its_key(runs: Path) -> None:
    """The ladder begins in the same life: a keyed repeat is harmless."""
    keys: list[str] = []

    @runner.tool(effect="keyed", remembers=timedelta(hours=1), timeout=SHORT)
    async def act(call: runner.Call) -> str:
        keys.append(call.key)
        if len(keys) == 1:
            await asyncio.sleep(FOREVER)
        return "done"

    clock = stage.Ticking()
    assert stage.finished(stage.start(ACT, act, runs=runs, clock=clock)) == "over"
    assert keys == [runner.key("r", "1.0")] * 2
    assert clock.slept == [4.0]
    assert [event.did for event in stage.events(runs, replay.AttemptEnded)] == ["unknown"]


def test_an_async_tool_that_times_out_once_asks_a_person(runs: Path) -> None:
    """A repeat may do it twice, and there is nobody else to ask."""
    began = 0

    @runner.tool(timeout=SHORT)
    async def act() -> None:
        nonlocal began
        began += 1
        await asyncio.sleep(FOREVER)

    (question,) = stage.asked(stage.start(ACT, act, runs=runs))
    assert (question.kind, began) == ("settle", 1)


def test_an_async_read_that_times_out_has_failed(runs: Path) -> None:
    """It changed nothing."""

    @runner.tool(effect="reads", timeout=SHORT)
    async def act() -> None:
        await asyncio.sleep(FOREVER)

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert stage.results(runs)["1.0"].how == "failed"


def test_a_sync_tool_that_times_out_is_in_flight_until_its_thread_ends(runs: Path) -> None:
    """Hazard 29: no rerun overtakes it, even where a rerun is harmless, and what it returns late is its result."""
    threads: list[threading.Thread] = []

    @runner.tool(effect="idempotent", timeout=SHORT)
    def act() -> str:
        threads.append(threading.current_thread())
        threading.Event().wait(SHORT * 5)
        return "late"

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert len(threads) == 1
    assert stage.results(runs)["1.0"].text == "late"
    assert stage.events(runs, replay.AttemptEnded) == []


def test_a_sync_tool_that_fails_late_is_settled_by_how_it_ended(runs: Path) -> None:
    """Its own word counts, not the clock's: `ToolFailed` is certain."""

    @runner.tool(timeout=SHORT)
    def act() -> str:
        threading.Event().wait(SHORT * 5)
        raise runner.ToolFailed("refused in the end")

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert stage.results(runs)["1.0"].how == "failed"


def test_a_sync_read_that_times_out_is_left_behind_and_keeps_the_lock(runs: Path, stagehand: Stagehand) -> None:
    """Nobody needs its answer, so the run goes on; for others it is not over while its thread runs (row 13)."""
    release = threading.Event()

    @runner.tool(effect="reads", timeout=SHORT)
    def act() -> str:
        release.wait(FOREVER)
        return "late"

    try:
        assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
        assert stage.results(runs)["1.0"].how == "failed"
        before = stage.written(runs)
        assert stagehand.play("resume", runs=runs).value[0] == "RunLocked"
    finally:
        release.set()
    stage.within(5, lambda: stagehand.play("resume", runs=runs).value == ["Finished", "over"])
    assert stage.written(runs) == before


def test_a_parked_life_keeps_the_lock_until_its_thread_ends(runs: Path, stagehand: Stagehand) -> None:
    """Hazard 29: cancelled, the life is over and writes nothing more; the effect still under way is nobody else's."""
    begun, release = threading.Event(), threading.Event()

    @runner.tool
    def act() -> str:
        begun.set()
        release.wait(FOREVER)
        return "late"

    async def cancelled() -> None:
        running = asyncio.ensure_future(runner.start(stage.agent(ACT, act), stage.TASK, runs=runs, run="r"))
        await asyncio.to_thread(begun.wait, FOREVER)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    try:
        asyncio.run(cancelled())
        before = stage.written(runs)
        assert stagehand.play("resume", runs=runs).value[0] == "RunLocked"
    finally:
        release.set()
    stage.within(5, lambda: stagehand.play("resume", runs=runs).value[0] == "Paused")
    assert stage.written(runs).startswith(before)
    assert stage.results(runs) == {}
    assert runner.read("r", runs).open == ("1.0",)


def test_a_lookup_that_times_out_is_asked_again_and_then_unsure(runs: Path) -> None:
    """A lookup that raises is asked three times on the schedule; a timeout is one way to raise."""
    release = threading.Event()
    asked = 0

    @runner.tool(timeout=SHORT)
    def act() -> str:
        raise runner.Unknown("no reply")

    @act.lookup
    def find(_call: runner.Call) -> runner.Found:
        nonlocal asked
        asked += 1
        release.wait(FOREVER)
        return runner.Found("never")

    clock = stage.Ticking()
    try:
        (question,) = stage.asked(stage.start(ACT, act, runs=runs, clock=clock))
    finally:
        release.set()
    assert (question.kind, asked, clock.slept) == ("settle", 3, [4.0, 16.0])


def test_a_tool_that_ignores_its_cancellation_is_waited_for(runs: Path) -> None:
    """A timeout can only ask a coroutine to end; what it does then is its outcome."""

    @runner.tool(timeout=SHORT)
    async def act() -> str:
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            return "stubborn"
        return "never"

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert stage.results(runs)["1.0"].text == "stubborn"
