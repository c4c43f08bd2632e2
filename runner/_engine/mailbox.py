"""The inbox of a run while a life waits: something new is noticed within `POLL` seconds, also while a tool runs.

One timer for each event loop looks for all lives that wait in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Iterator

from runner._runs.requests import Inbox

POLL = 0.25
"""Seconds between two looks."""


class _Looking:
    """The mailboxes of the lives that wait in one loop."""

    def __init__(self) -> None:
        self.waiting: dict[Mailbox, asyncio.Future[None]] = {}
        self.timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Wake the lives that have mail, and look again later while anybody waits."""
        for mailbox, noticed in list(self.waiting.items()):
            if not noticed.done() and mailbox.has_new():
                noticed.set_result(None)
        self.timer = asyncio.get_running_loop().call_later(POLL, self.look) if self.waiting else None


_looking: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Looking] = weakref.WeakKeyDictionary()


class Mailbox(Inbox):
    """The inbox of a run that a life holds."""

    @contextlib.contextmanager
    def noticed(self) -> Iterator[asyncio.Future[None]]:
        """A future that is done once something lies there that was not looked at."""
        loop = asyncio.get_running_loop()
        looking = _looking.setdefault(loop, _Looking())
        future = looking.waiting[self] = loop.create_future()
        if looking.timer is None:
            looking.timer = loop.call_later(POLL, looking.look)
        try:
            yield future
        finally:
            looking.waiting.pop(self, None)
            if not looking.waiting and looking.timer is not None:  # it would keep a loop that was closed
                looking.timer.cancel()
                looking.timer = None
