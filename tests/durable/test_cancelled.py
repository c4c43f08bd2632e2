"""A block, or an act in it, that is cancelled: the run is interrupted, says so, and goes on in another life."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import eventlog
import runner
import runner.adapters
from runner import durable
from runner.errors import Interrupted


async def test_a_cancelled_block_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    """A timeout around it stops the run; what was in flight is in doubt, and climbs the ladder."""
    began, tries = asyncio.Event(), list[str]()

    async def life(*, hangs: bool) -> None:
        async def body(call: runner.Call) -> str:
            tries.append(call.key)
            began.set()
            await (asyncio.Event().wait() if hangs else asyncio.sleep(0))
            return "done"

        async with durable("t", runs=tmp_path, run="r") as run:
            await run.act(runner.tool(effect="idempotent", name="go")(nothing), {}, body)

    def nothing() -> None: ...

    task = asyncio.create_task(life(hangs=True))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stopped = runner.read_state("r", tmp_path).stopped
    assert stopped is not None
    assert stopped.reason == "Interrupted"
    await life(hangs=False)
    assert len(tries) == 2
    assert len(set(tries)) == 1


async def test_a_timeout_that_expires_while_a_block_gives_its_lock_back_is_raised_at_the_block(tmp_path: Path) -> None:
    """Nothing after that waits: the cancellation would come out of whatever the program awaits next."""
    loop, expired = asyncio.get_running_loop(), threading.Event()

    class Expiring(eventlog.Disk):
        def unlock(self, fd: int) -> None:
            super().unlock(fd)
            loop.call_soon_threadsafe(expire)
            assert expired.wait(60)

    def expire() -> None:
        scope.reschedule(loop.time())
        loop.call_soon(loop.call_soon, loop.call_soon, expired.set)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60) as scope, durable("t", runs=eventlog.Directory(tmp_path, disk=Expiring())):
            pass
    await asyncio.sleep(0)


async def test_a_timeout_that_expires_while_a_step_is_saved_is_raised_by_it_and_interrupts_the_run(
    tmp_path: Path,
) -> None:
    """Later lives have the step, so what the program does without it would be another way than theirs."""
    loop, expired = asyncio.get_running_loop(), threading.Event()

    class Expiring(eventlog.Disk):
        expires = False

        def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
            if self.expires:
                self.expires = False
                loop.call_soon_threadsafe(expire)
                assert expired.wait(60)
            super().pwrite(fd, data, offset)

    def expire() -> None:
        scope.reschedule(loop.time())
        loop.call_soon(loop.call_soon, loop.call_soon, expired.set)

    disk = Expiring()
    with pytest.raises(Interrupted):  # noqa: PT012 (what is passed over in a block is raised by it)
        async with durable("t", runs=eventlog.Directory(tmp_path, disk=disk), run="r") as run:
            await run.step("first", lambda: 1)
            with pytest.raises(TimeoutError):  # noqa: PT012
                async with asyncio.timeout(60) as scope:
                    disk.expires = True
                    await run.step("second", lambda: 2)
            await asyncio.sleep(0)
    stopped = runner.read_state("r", tmp_path).stopped
    assert stopped is not None
    assert stopped.reason == "Interrupted"
    async with durable("t", runs=tmp_path, run="r") as run:
        assert [await run.step("first", lambda: 3), await run.step("second", lambda: 4)] == [1, 2]


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_cancelled_act_that_the_program_passes_over_interrupts_the_block(tmp_path: Path, goes_on: bool) -> None:
    """A timeout around one act: the block raises what became of the run, whether anything else is done with it."""
    began = asyncio.Event()

    async def hang(_: runner.Call) -> None:
        began.set()
        await asyncio.Event().wait()

    async def life() -> None:
        async with durable("t", runs=tmp_path, run="r", tools=[runner.tool(effect="idempotent")(go)]) as run:
            act = asyncio.create_task(run.act("go", {}, hang))
            await began.wait()
            act.cancel()
            await asyncio.wait({act})
            if goes_on:
                await run.act("go", {})

    def go() -> None: ...

    with pytest.raises(Interrupted):
        await life()
    assert runner.read_state("r", tmp_path).phase != "done"


async def test_a_task_that_outlives_a_cancelled_block_writes_nothing_beside_its_end(tmp_path: Path) -> None:
    """What it begins while the end is saved would stand behind it, and no process could read the run again."""
    loop, ending, tried, tasks = (
        asyncio.get_running_loop(),
        asyncio.Event(),
        threading.Event(),
        list[asyncio.Task[str]](),
    )

    class Slow(eventlog.Disk):
        def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
            if b"run_stopped" in bytes(data):
                loop.call_soon_threadsafe(ending.set)
                assert tried.wait(60)
            super().pwrite(fd, data, offset)

    async def outlives(run: runner.adapters.Durable) -> str:
        await ending.wait()
        going = asyncio.create_task(run.act("go", {"n": 2}))
        for _ in range(50):
            await asyncio.sleep(0)
        tried.set()
        return await going

    @runner.tool(effect="idempotent")
    async def go(n: int) -> str:
        return str(n)

    async def life(*, ends: bool) -> str:
        async with durable("t", runs=eventlog.Directory(tmp_path, disk=Slow()), run="r", tools=[go]) as run:
            await run.act(go, {"n": 1})
            if ends:
                tasks.append(asyncio.create_task(outlives(run)))
                asyncio.current_task().cancel()  # type: ignore[union-attr] # a test has one
                await asyncio.sleep(0)
            return await run.act(go, {"n": 2})

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(life(ends=True))
    await asyncio.wait(tasks)
    assert await life(ends=False) == "2"
    assert "Interrupted" in str(tasks[0].exception())
