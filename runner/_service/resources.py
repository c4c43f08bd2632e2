"""What a worker's agents read as `call.resources`: entered once for each, at its first run, and left at the end.

Each is entered and left in one task of its own, as task groups and cancel scopes demand. A factory that raises is a
problem of its agent: the runs stay due, nothing is written, and it is tried again, later each time. So are resources
that end by themselves.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from runner._agent.agent import AnyAgent
from runner._engine.session import entered

FIRST, MOST = 1.0, 60.0
"""Seconds until a factory that raised is tried again: at first, and at most."""


class Resources:
    """The resources of one agent. `value` counts once `ready` is true.

    `changed` is called when they are ready, and, with the error, when they are not and are tried again.
    """

    def __init__(self, agent: AnyAgent, changed: Callable[[BaseException | None], None]) -> None:
        self._agent = agent
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self.ready = agent.resources is None
        self.value: Any = None

    def enter(self) -> None:
        """Begin to enter them, unless that was done before."""
        if not self.ready and self._task is None:
            self._task = asyncio.create_task(self._hold())

    async def leave(self, patience: float) -> None:
        """Leave them, after the last call has ended; seconds of patience are spent on it."""
        self._leave.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=patience)

    async def _hold(self) -> None:
        delay = FIRST
        while not self._leave.is_set():
            try:
                async with entered(self._agent) as self.value:
                    self.ready, delay = True, FIRST
                    self._changed(None)
                    await self._leave.wait()
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():  # the program's end, and not an error of the agent's
                    raise
                self.ready = False  # they may have ended by themselves
                self._changed(error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._leave.wait(), delay)
                delay = min(2 * delay, MOST)
