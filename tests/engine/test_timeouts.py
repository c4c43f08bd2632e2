"""Timeouts: a coroutine is cut off and its call is open; a thread ends by itself, never overtaken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import runner
import runner.testing
from replay.events import AttemptEnded
from runner._engine import inflight
from tests.engine import scenes
from tests.support import stage
from tests.support.forkserver import ForkServer

SHORT = 0.03
ACT = [runner.testing.tool_calls(("act", {})), "over"]
FOREVER = 60.0


def test_an_async_tool_that_times_out_is_repeated_under_its_key(runs: Path) -> None:
    """The ladder begins in the same life: a keyed repeat is harmless."""
    keys: list[str] = []

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), timeout=SHORT)
    async def act(call: runner.Call) -> str:
        keys.append(call.key)
        if len(keys) == 1:
            await asyncio.sleep(FOREVER)
        return "done"

    clock = stage.Ticking()
    assert stage.finished(stage.start(ACT, act, runs=runs, clock=clock)) == "over"
    assert keys == [stage.key(runs, "1.0")] * 2
    assert clock.slept == [4.0]
    assert [event.did for event in stage.events(runs, AttemptEnded)] == ["unknown"]


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

    assert stage.finished(stage.start(ACT, act, runs=runs, clock=stage.Ticking())) == "over"
    assert stage.results(runs)["1.0"].how == "failed"


@pytest.mark.fault("error between marker and result")
def test_a_sync_tool_that_times_out_is_in_flight_until_its_thread_ends(runs: Path) -> None:
    """No rerun overtakes it, even where a rerun is harmless, and what it returns late is its result."""
    threads: list[threading.Thread] = []

    @runner.tool(effect="idempotent", timeout=SHORT)
    def act() -> str:
        threads.append(threading.current_thread())
        threading.Event().wait(SHORT * 5)
        return "late"

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert len(threads) == 1
    assert stage.results(runs)["1.0"].text == "late"
    assert stage.events(runs, AttemptEnded) == []


def test_a_sync_tool_that_fails_late_is_settled_by_how_it_ended(runs: Path) -> None:
    """Its own word counts, not the clock's: `ToolFailed` is certain."""

    @runner.tool(timeout=SHORT)
    def act() -> str:
        threading.Event().wait(SHORT * 5)
        raise runner.ToolFailed("refused in the end")

    assert stage.finished(stage.start(ACT, act, runs=runs, clock=stage.Ticking())) == "over"
    assert stage.results(runs)["1.0"].how == "failed"


@pytest.mark.fault("a hanging read keeps the lock")
def test_a_sync_read_that_hangs_does_not_keep_the_lock(runs: Path, forks: ForkServer) -> None:
    """Nobody needs its answer, so the run goes on, and it can't act, so another process may carry the run on."""
    release = threading.Event()

    @runner.tool(effect="reads", timeout=SHORT)
    def act() -> str:
        release.wait(FOREVER)
        return "late"

    try:
        assert stage.finished(stage.start(ACT, act, runs=runs, clock=stage.Ticking())) == "over"
        assert stage.results(runs)["1.0"].how == "failed"
        assert forks.run(scenes.resume, runs=runs).value == ["Finished", "over"]
    finally:
        release.set()


@pytest.mark.fault("a hanging read keeps the lock")
def test_a_lookup_that_hangs_does_not_keep_the_lock(runs: Path) -> None:
    """It only asks; a person may answer at once, from any process."""
    release = threading.Event()

    @runner.tool(timeout=SHORT)
    def act() -> str:
        raise ConnectionError

    @act.lookup(visible_within=0)
    def find(call: runner.Call) -> runner.Missing:
        release.wait(FOREVER)
        raise AssertionError(call)

    try:
        (question,) = stage.asked(stage.start(ACT, act, runs=runs, clock=stage.Ticking()))
        runner.settle("r", question.id, "ann", "done", "did it", runs=runs)
        assert runner.read_state("r", runs).waiting == ()
    finally:
        release.set()


@pytest.mark.fault("an error of ours leaves a call in doubt")
@pytest.mark.parametrize("trouble", ["thread", "signature"])
def test_a_body_that_was_never_called_has_not_acted(runs: Path, monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    """Nobody is asked whether it happened: it can't have."""

    @runner.tool
    def act() -> str:
        raise AssertionError

    def refuses(_thread: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    if trouble == "thread":
        monkeypatch.setattr(inflight, "threads", inflight.Threads())  # none is kept of earlier calls
        monkeypatch.setattr(threading.Thread, "start", refuses)
    else:
        act = act.around(lambda _: lambda missing: missing)
    assert stage.finished(stage.start(ACT, act, runs=runs, clock=stage.Ticking())) == "over"
    assert stage.results(runs)["1.0"].how == "failed"
    assert {event.did for event in stage.events(runs, AttemptEnded)} == {"nothing"}


@pytest.mark.fault("an error of ours leaves a call in doubt")
def test_a_type_error_of_the_body_itself_leaves_the_call_in_doubt(runs: Path) -> None:
    """It was called, and may have acted before it raised."""

    @runner.tool
    def act() -> str:
        raise TypeError

    assert stage.asked(stage.start(ACT, act, runs=runs, clock=stage.Ticking()))


@pytest.mark.fault("error between marker and result")
def test_a_parked_life_keeps_the_lock_until_its_thread_ends(runs: Path, forks: ForkServer) -> None:
    """Cancelled, the life is over and writes nothing more; the effect still under way is nobody else's."""
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
        assert forks.run(scenes.resume, runs=runs).value[0] == "RunLocked"
    finally:
        release.set()
    stage.within(5, lambda: forks.run(scenes.resume, runs=runs).value[0] == "Paused")
    assert stage.written(runs).startswith(before)
    assert stage.results(runs) == {}
    assert runner.read_state("r", runs).in_doubt == ("1.0",)


def test_a_coroutine_that_a_late_function_returns_has_a_time_of_its_own(runs: Path) -> None:
    """What the function took is over; what it returned must not hang for ever either."""

    @runner.tool(timeout=SHORT)
    async def act() -> None:
        await asyncio.sleep(FOREVER)

    def slowly(body: Callable[..., object]) -> Callable[..., object]:
        def call() -> object:
            threading.Event().wait(SHORT * 3)
            return body()

        return call

    (question,) = stage.asked(stage.start(ACT, act.around(slowly), runs=runs))
    assert question.kind == "settle"


@pytest.mark.parametrize("plain", [False, True])
def test_calls_side_by_side_time_out_each_at_its_own_time(runs: Path, plain: bool) -> None:
    """The one that begins first may take longest: it ends well, after the others were cut off one after the other."""
    cut, both = list[str](), asyncio.Event()

    async def hang(name: str) -> None:
        try:
            await asyncio.sleep(FOREVER)
        finally:
            cut.append(name)
            if len(cut) == 2:
                both.set()

    @runner.tool(effect="reads", attempts=1, timeout=SHORT * 3)
    async def later() -> None:
        await hang("later")

    @runner.tool(effect="reads", attempts=1, timeout=SHORT)
    async def soon() -> None:
        await hang("soon")

    async def last() -> str:
        await both.wait()
        return "done"

    def last_plainly() -> str:
        stage.within(FOREVER / 2, lambda: len(cut) == 2)
        return "done"

    first = runner.tool(effect="reads", timeout=FOREVER, name="first")(last_plainly if plain else last)
    calls = runner.testing.tool_calls(("first", {}), ("later", {}), ("soon", {}))
    assert stage.finished(stage.start([calls, "over"], first, later, soon, runs=runs)) == "over"
    assert [stage.results(runs)[call].how for call in ("1.0", "1.1", "1.2")] == ["ran", "failed", "failed"]


def test_a_lookup_that_times_out_is_asked_again_and_then_unsure(runs: Path) -> None:
    """A lookup that raises is asked three times on the schedule; a timeout is one way to raise."""
    release = threading.Event()
    asked = 0

    @runner.tool(timeout=SHORT)
    def act() -> str:
        raise runner.OutcomeUnknown("no reply")

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
