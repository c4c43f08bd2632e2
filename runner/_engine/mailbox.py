"""The inbox of a run while a life goes on: something new is noticed within `POLL` seconds, also while a tool runs.

One timer for each event loop looks for all lives in it, for a few at a time: looking for a thousand at once keeps the
loop for 10 ms.
"""

import asyncio
import contextlib
import weakref
from collections.abc import Iterator

from runner._engine.bell import Bell
from runner._runs.requests import Inbox

POLL = 0.25
"""Seconds between two looks."""
AT_ONCE = 20
"""Lives that are looked for in one turn of the loop."""


class _Looking:
    """The mailboxes of the lives in one loop."""

    def __init__(self) -> None:
        self.waiting: dict[Mailbox, weakref.ref[Bell]] = {}
        """Nothing here keeps a life whose loop was left before it had ended."""
        self._due: list[Mailbox] = []
        self.is_armed = False
        """Whether a timer runs. Only the loop knows it, so that nothing here keeps a loop that was closed."""

    def look(self) -> None:
        """Wake those of the next lives that have mail, and look again later while anybody waits."""
        due = self._due or list(self.waiting)
        self._due = due[AT_ONCE:]
        for mailbox in due[:AT_ONCE]:
            waits = self.waiting.get(mailbox)
            bell = waits() if waits is not None else None
            if bell is not None and mailbox.has_new():
                bell.ring()
        self.is_armed = bool(self.waiting)
        if self.is_armed:
            looks = -(-len(self.waiting) // AT_ONCE)
            asyncio.get_running_loop().call_later(POLL / looks, self.look)


_looking: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Looking] = weakref.WeakKeyDictionary()


class Mailbox(Inbox):
    """The inbox of a run that a life holds."""

    @contextlib.contextmanager
    def noticed(self, bell: Bell) -> Iterator[None]:
        """While this lasts, the bell rings when something lies there that was not looked at."""
        loop = asyncio.get_running_loop()
        looking = _looking.setdefault(loop, _Looking())
        looking.waiting[self] = weakref.ref(bell)
        if not looking.is_armed:
            looking.is_armed = True
            loop.call_later(POLL, looking.look)
        try:
            yield
        finally:
            looking.waiting.pop(self, None)
