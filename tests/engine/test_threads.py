"""The threads of plain functions: each call has one to itself, and they are kept for the next."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
from runner._engine.inflight import Give, InFlight, Threads
from runner.testing import tool_calls
from tests.support import stage
from tests.support.forkserver import ForkServer

WAIT = 60.0
ACT = [tool_calls(("act", {})), "over"]


def test_one_call_after_another_has_the_same_thread(runs: Path) -> None:
    """Starting one takes as long as a quick save."""
    seen: list[threading.Thread] = []

    @runner.tool(effect="reads")
    def act() -> str:
        seen.append(threading.current_thread())
        return "done"

    assert stage.finished(stage.start([*ACT[:1] * 5, "over"], act, runs=runs)) == "over"
    assert len(seen) == 5
    assert len({*seen}) == 1


def test_calls_side_by_side_never_share_a_thread(runs: Path) -> None:
    """One that waits for another would wait for itself."""
    together = threading.Barrier(8)

    @runner.tool(effect="reads")
    def act(n: int) -> str:
        together.wait(WAIT)
        return str(n)

    script = [tool_calls(*[("act", {"n": n}) for n in range(8)]), "over"]
    assert stage.finished(stage.start(script, act, runs=runs)) == "over"
    assert sorted(result.text for result in stage.results(runs).values()) == [str(n) for n in range(8)]


def test_what_a_call_sets_for_its_context_is_gone_for_the_next(runs: Path) -> None:
    """A thread is shared in turn; the context of a call is its own."""
    seen: list[str] = []

    @runner.tool(effect="reads")
    def act(call: runner.Call) -> str:
        seen.append(runner.current_call().id)
        return call.id

    assert stage.finished(stage.start([*ACT[:1] * 2, "over"], act, runs=runs)) == "over"
    assert seen == ["1.0", "2.0"]


def in_parent_and_child(runs: str) -> str:
    """Run a plain function, then another in a forked child: the phase that the child's run came to."""

    @runner.tool(effect="reads")
    def act() -> str:
        return "done"

    stage.start(ACT, act, runs=Path(runs), run="parent")
    child = os.fork()
    if child == 0:
        try:
            stage.start(ACT, act, runs=Path(runs), run="child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return runner.read_state("child", runs).phase


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own(forks: ForkServer, runs: Path) -> None:
    """It inherits what is known of its parent's threads, and none of the threads: a call would wait for ever."""
    assert forks.run(in_parent_and_child, runs=runs).value == "done"


def without_threads(runs: str, refusal: str) -> list[str]:
    """Some runs in one loop, where the system gives no thread to a save or an opening: what they answer."""

    def refuse(self: threading.Thread) -> None:
        raise {"RuntimeError": RuntimeError, "MemoryError": MemoryError}[refusal](f"can't start new thread {self.name}")

    threading.Thread.start = refuse  # type: ignore[method-assign] # in a process of its own

    async def go() -> list[str]:
        started = (runner.start(stage.agent(["fine"]), stage.TASK, runs=runs, run=f"r{n}") for n in range(3))
        return [stage.finished(outcome) for outcome in await asyncio.gather(*started)]

    return asyncio.run(go())


@pytest.mark.fault("no thread can be started")
@pytest.mark.parametrize("refusal", ["RuntimeError", "MemoryError"])
def test_runs_are_carried_on_and_saved_where_no_thread_can_be_started(
    forks: ForkServer, runs: Path, refusal: str
) -> None:
    """Saves that wait for a thread which never begins would wait for ever, also once there are threads again."""
    assert forks.run(without_threads, runs=runs, refusal=refusal).value == ["fine"] * 3


def short_of_memory(runs: str) -> list[object]:
    """A run whose call's thread finds no memory: what it answers, what the call came to, and who holds the run."""
    starts = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name == "refold-tool":
            raise MemoryError("no stack")
        starts(self)

    threading.Thread.start = start  # type: ignore[method-assign] # in a process of its own

    @runner.tool(effect="non_idempotent", attempts=1)
    def act() -> str:
        return "done"

    answer = stage.finished(runner.start_sync(stage.agent(ACT, act), stage.TASK, runs=runs, run="r"))
    return [answer, stage.results(Path(runs))["1.0"].text, eventlog.store(runs).holder("r")]


@pytest.mark.fault("no thread can be started")
def test_a_call_whose_thread_finds_no_memory_did_nothing_and_its_run_is_given_back(
    forks: ForkServer, runs: Path
) -> None:
    """It was in doubt, and in flight for ever: no process could open the run until this one ended."""
    answer, said, holder = forks.run(short_of_memory, runs=runs).value
    assert (answer, holder) == ("over", None)
    assert "its thread could not be started: no stack" in said


def interrupted_as_it_starts(runs: str) -> list[bool]:
    """A call whose thread has begun when an interrupt comes: whether the run is held meanwhile, and given back then."""
    starts, over = Threads.run, threading.Event()

    def run(self: Threads, body: Callable[[], Give]) -> None:
        starts(self, body)
        raise KeyboardInterrupt

    Threads.run = run  # type: ignore[method-assign] # in a process of its own

    @runner.tool(effect="non_idempotent")
    def act() -> None:
        over.wait(WAIT)

    with contextlib.suppress(KeyboardInterrupt):
        runner.start_sync(stage.agent(ACT, act), stage.TASK, runs=runs, run="r")
    store = eventlog.store(runs)
    held = [store.holder("r") is not None]
    over.set()
    stage.within(WAIT, lambda: store.holder("r") is None)
    return [*held, store.holder("r") is not None]


@pytest.mark.fault("an interrupt as a thread starts")
def test_a_call_that_an_interrupt_finds_in_its_thread_holds_the_run_until_it_ends(
    forks: ForkServer, runs: Path
) -> None:
    """Another process would do it again beside it."""
    assert forks.run(interrupted_as_it_starts, runs=runs).value == [True, False]


def short_where_it_begins(runs: str) -> str:
    """A run of which nothing can be counted as in flight: whether who waits hears of it, and when."""

    def begin(self: InFlight) -> None:  # noqa: ARG001 (as the method takes it)
        raise MemoryError("no room to count")

    InFlight.begin = begin  # type: ignore[method-assign] # in a process of its own

    async def go() -> str:
        try:
            await asyncio.wait_for(runner.start(stage.agent(["fine"]), stage.TASK, runs=runs, run="r"), WAIT)
        except (MemoryError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        return "finished"

    return asyncio.run(go())


@pytest.mark.fault("no thread can be started")
def test_what_finds_no_memory_as_it_begins_ends_the_run_with_that_error(forks: ForkServer, runs: Path) -> None:
    """The run waited for ever for what had already failed."""
    assert forks.run(short_where_it_begins, runs=runs).value == "MemoryError: no room to count"


def not_handed_over(runs: str) -> list[object]:
    """Three runs in one loop, of which one can not hand its flush to the kernel: what they come to, by type."""
    soon, refused = asyncio.BaseEventLoop.call_soon, list[object]()

    def call_soon(self: asyncio.BaseEventLoop, callback: Callable[..., object], *args: Any, **more: Any) -> Any:
        if getattr(callback, "__name__", "") == "_submit" and not refused:
            refused.append(callback)
            raise MemoryError("no room to hand it over")
        return soon(self, callback, *args, **more)

    asyncio.BaseEventLoop.call_soon = call_soon  # type: ignore[method-assign, assignment] # in a process of its own

    @runner.tool(effect="reads")
    async def look() -> str:
        return "nothing"

    async def go() -> list[object]:
        script = [*[tool_calls(("look", {}))] * 9, "fine"]
        agents = (stage.agent(script, look) for _ in range(3))
        started = (runner.start(each, stage.TASK, runs=runs, run=f"r{n}") for n, each in enumerate(agents))
        return await asyncio.wait_for(asyncio.gather(*started, return_exceptions=True), WAIT)

    return [type(came).__name__ for came in asyncio.run(go())] + [len(refused)]


@pytest.mark.fault("no thread can be started")
def test_a_save_that_can_not_be_handed_over_keeps_no_other_run_waiting(forks: ForkServer, runs: Path) -> None:
    """They waited for ever: each took it for ordered by the one that had failed."""
    *came, refused = forks.run(not_handed_over, runs=runs).value
    assert came.count("Finished") == 3 - refused, came  # it is ordered only where the kernel carries flushes on


def left_by_its_loop(runs: str) -> list[str]:
    """A run whose loop is closed while its tool waits: what a signal does then, and what a resume comes to."""

    @runner.tool(effect="reads", name="act")
    async def leaves() -> None:
        asyncio.get_running_loop().stop()
        await asyncio.Event().wait()

    @runner.tool(effect="reads")
    def act() -> str:
        return "done"

    loop = asyncio.new_event_loop()
    left = loop.create_task(runner.start(stage.agent(ACT, leaves), stage.TASK, runs=runs, run="r"))
    loop.run_forever()
    loop.close()
    signalled = ""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        signalled = "interrupted"
    del left
    gc.collect()
    return [signalled, stage.finished(runner.resume_sync("r", stage.agent(ACT, act), runs=runs))]


@pytest.mark.fault("an event loop that is closed under a run")
def test_a_run_that_its_loop_left_keeps_neither_its_lock_nor_a_signal(forks: ForkServer, runs: Path) -> None:
    """Nothing in the process would ever end it, and nobody else could open it until the process ended."""
    assert forks.run(left_by_its_loop, runs=runs).value == ["interrupted", "over"]
