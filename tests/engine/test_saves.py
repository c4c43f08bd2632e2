"""How saves run: a lone run's in the loop's thread, several runs' beside the loop, each to its end.

Beside the loop is a thread, or the kernel where it carries flushes on; a stand-in for that lets a test hold them.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import eventlog
import runner
import runner.testing
from tests.support import stage
from tests.support.flushing import ByHand

SCRIPT = [runner.testing.tool_calls(("act", {})), "over"]
PATIENCE = 90.0


@runner.tool(effect="reads")
async def act() -> str:
    """Give something back."""
    return "done"


class Slow:
    """The disk, whose flushes can be held, or made to fail for one run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kernel: bool) -> None:
        self.threads: list[int] = []
        self.reached, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.fails = ""
        real = eventlog.Disk.datasync

        def datasync(disk: eventlog.Disk, fd: int) -> None:
            self.threads.append(threading.get_ident())
            self.reached.set()
            assert self.go.wait(PATIENCE)
            if self.fails and Path(f"/dev/fd/{fd}").resolve().parent.name == self.fails:
                raise OSError(5, "the disk fails")
            real(disk, fd)

        monkeypatch.setattr(eventlog.Disk, "datasync", datasync)
        places = self.places = [ByHand(eventlog.DISK.datasync)] if kernel else []
        monkeypatch.setattr(eventlog.Disk, "kernel_flushes", lambda _: next(iter(places), None))

    def hold(self) -> None:
        """Let the next flush wait for `go`."""
        self.reached.clear()
        self.go.clear()


@pytest.fixture(params=["threads", "kernel"])
def slow(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Slow]:
    """Give the disk, with and without flushes that the kernel carries on."""
    one = Slow(monkeypatch, kernel=request.param == "kernel")
    yield one
    for place in one.places:
        place.close()


async def started(runs: Path, name: str) -> object:
    """Run a small agent to its end."""
    return await runner.start(stage.agent(SCRIPT, act), stage.TASK, runs=runs, run=name)


@contextlib.asynccontextmanager
async def beside(runs: Path) -> AsyncIterator[None]:
    """While this lasts another run is alive, waiting in a tool."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @runner.tool(effect="reads")
    async def hold() -> str:
        begun.set()
        await ended.wait()
        return "held"

    agent = stage.agent([runner.testing.tool_calls(("hold", {})), "over"], hold)
    other = asyncio.ensure_future(runner.start(agent, stage.TASK, runs=runs, run="other"))
    await begun.wait()
    try:
        yield
    finally:
        ended.set()
        await other


def test_a_run_that_is_alone_saves_in_the_loops_thread(runs: Path, slow: Slow) -> None:
    """Handing a save to a thread costs as much as a fast disk's flush; nobody else is kept waiting."""
    asyncio.run(started(runs, "r"))
    assert set(slow.threads) == {threading.get_ident()}


def test_the_loop_goes_on_while_one_of_several_runs_is_being_saved(runs: Path, slow: Slow) -> None:
    """A disk that takes its time must not keep the other runs waiting."""

    async def main() -> None:
        async with beside(runs):
            slow.hold()
            running = asyncio.ensure_future(started(runs, "r"))
            assert await asyncio.to_thread(slow.reached.wait, PATIENCE)  # the loop is here, and a flush is held
            assert not running.done()
            slow.go.set()
            assert stage.finished(await running) == "over"

    asyncio.run(main())
    assert len([thread for thread in slow.threads if thread != threading.get_ident()]) >= 4


def test_a_save_that_has_begun_is_waited_for_and_the_cancellation_comes_after_it(runs: Path, slow: Slow) -> None:
    """Nobody may take a line for lost that is on the disk: what had returned is there, and the stop is after it."""
    told = asyncio.Event()

    @runner.tool(effect="reads")
    async def tell() -> str:
        slow.hold()
        told.set()
        return "told"

    async def main() -> None:
        agent = stage.agent([*[runner.testing.tool_calls(("tell", {}))] * 3, "over"], tell)
        async with beside(runs):
            running = asyncio.ensure_future(runner.start(agent, stage.TASK, runs=runs, run="r"))
            await told.wait()
            assert await asyncio.to_thread(slow.reached.wait, PATIENCE)
            for _ in range(2):
                running.cancel()
                await asyncio.sleep(0)
            assert not running.done()
            slow.go.set()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(main())
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert state.stopped.reason == "Interrupted"
    assert stage.results(runs)["1.0"].text == "told"


def test_a_save_that_fails_in_a_thread_ends_its_own_run_with_its_own_error(runs: Path, slow: Slow) -> None:
    """The error of a save reaches the run whose save it was."""

    async def main() -> None:
        async with beside(runs):
            slow.fails = "r"
            with pytest.raises(eventlog.LogDead) as dead:
                await started(runs, "r")
            assert dead.value.run == "r"

    asyncio.run(main())
    assert runner.read_state("other", runs).phase == "done"


def test_a_forked_child_has_threads_of_its_own(runs: Path) -> None:
    """A fork has none of its parent's threads; runs that it starts must not wait for them for ever."""
    asyncio.run(_two(runs, "parent"))
    child = multiprocessing.get_context("fork").Process(target=_forked, args=(runs,))
    with contextlib.suppress(DeprecationWarning):
        child.start()
    child.join(PATIENCE)
    child.kill()  # one that waits for ever must not outlive the test
    assert child.exitcode == 0
    assert runner.read_state("child-1", runs).phase == runner.read_state("child-2", runs).phase == "done"


def _forked(runs: Path) -> None:
    asyncio.run(_two(runs, "child"))


async def _two(runs: Path, name: str) -> None:
    await asyncio.gather(started(runs, f"{name}-1"), started(runs, f"{name}-2"))
