"""A timeout that expires while a thread does what was called: it is raised by that call, and by nothing after it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from tests.support import stage

OPERATIONS = ("open", "stat", "sync_dir", "try_lock", "host")


class Expiring(eventlog.Disk):
    """A disk at whose next operation in a thread a timeout expires."""

    loop: asyncio.AbstractEventLoop
    scope: asyncio.Timeout | None = None

    def expire(self) -> None:
        """Have it expire, and return once the call was cancelled."""
        scope, self.scope = self.scope, None
        if scope is not None and threading.current_thread() is not threading.main_thread():
            self.loop.call_soon_threadsafe(self.cancel, scope, over := threading.Event())
            assert over.wait(60)

    def cancel(self, scope: asyncio.Timeout, over: threading.Event) -> None:
        """Expire, which cancels a turn of the loop later."""
        scope.reschedule(self.loop.time())
        self.loop.call_soon(self.loop.call_soon, self.loop.call_soon, over.set)


def _expires(name: str) -> Callable[..., Any]:
    def operation(self: Expiring, *given: Any, **more: Any) -> Any:
        self.expire()
        return getattr(eventlog.Disk, name)(self, *given, **more)

    return operation


for one in OPERATIONS:
    setattr(Expiring, one, _expires(one))

Store = eventlog.Store
AGENT = runner.Agent(name="agent", model=stage.scripted("over"))


class Never(runner.testing.ScriptedModel):
    """A model that answers nothing, so that another life shares the loop."""

    async def ask(self, request: runner.Request) -> Any:  # noqa: ARG002 (a model's face)
        """Wait for ever."""
        await asyncio.Event().wait()


BESIDE = runner.Agent(name="beside", model=Never([]))
CALLS: dict[str, Callable[[Store, Any, runner.Worker], Awaitable[object]]] = {
    "run": lambda store, _, __: runner.run(AGENT, stage.TASK, run="r", runs=store),
    "resume": lambda store, _, __: runner.resume("r", AGENT, runs=store),
    "stop": lambda _, run, __: run.stop("me"),
    "park": lambda _, run, __: run.park("me"),
    "send": lambda _, run, __: run.send("hello", "me"),
    "outcome": lambda _, run, __: run.outcome(),
    "start": lambda _, __, worker: worker.start(AGENT, stage.TASK, run="another"),
    "attach": lambda _, __, worker: worker.start(AGENT, stage.TASK, run="r"),
    "enter": lambda store, _, __: runner.Worker([AGENT], runs=store).__aenter__(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_timeout_that_expires_during_a_call_is_raised_by_it(tmp_path: Path, call: str) -> None:
    """It is not passed over, and does not come out of whatever the program awaits next."""
    asyncio.run(_expiring(tmp_path, call))


async def _expiring(tmp_path: Path, call: str) -> None:
    disk = Expiring()
    disk.loop = asyncio.get_running_loop()
    store = eventlog.Directory(tmp_path, disk=disk)
    async with runner.Worker([AGENT, BESIDE], runs=store, grace=0) as worker, asyncio.timeout(60):
        await worker.start(BESIDE, stage.TASK)
        run = await worker.start(AGENT, stage.TASK, run="r")
        await run.outcome()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as disk.scope:
                await CALLS[call](store, run, worker)
        await asyncio.sleep(0)
