"""A run's page while it happens: server-sent events of what is saved, and of the text that comes where it is carried.

A secret may be split over pieces of text. So what is sent is the masked end of all the text so far, without its last
word, which may still be one's beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import eventlog
import replay
import runner

TAIL = 4000
"""Characters of the end of a text that are sent."""
QUIET = 0.15
"""Seconds in which pieces are gathered."""
BEAT = 15.0
"""Seconds after which a word is sent, so that a connection that is gone is noticed."""


async def events(run: str, store: eventlog.Store, after: int) -> AsyncIterator[str]:
    """What a page is told of a run after a line, to the end of the run."""
    stream = runner.stream(run, runs=store, after=after)
    said, ask, fresh, sent = "", (0, 0), False, 0.0
    coming: asyncio.Task[Any] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(stream))
            done, _ = await asyncio.wait({coming}, timeout=QUIET if fresh else BEAT)
            if fresh and time.monotonic() > sent + QUIET:
                yield _event("text", {"text": _shown(said)})
                fresh, sent = False, time.monotonic()
            if not done:
                yield ": here\n\n"
                continue
            told, coming = coming.result(), None
            if told.kind == "saved":
                said, fresh = "", False
                yield _event("saved", {"line": told.seq, "at": f"{told.at:%H:%M:%S}"}, told.seq)
            elif told.kind == "text":
                said = (said if (told.turn, told.n) == ask else "") + told.text
                ask, fresh = (told.turn, told.n), True
            elif told.kind == "progress":
                facts = {"call": told.call, "tool": told.tool, "text": told.text, "fraction": told.fraction}
                yield _event("progress", facts)
    except StopAsyncIteration:
        yield _event("over", {})
    except (eventlog.LogError, replay.ReplayError) as error:
        yield _event("over", {"why": str(error)})
    finally:
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(BaseException):
                await coming
        await stream.aclose()


def _shown(said: str) -> str:
    whole = said[-2 * TAIL :].rpartition(" ")[0]
    return runner.review.redact(whole, runner.review.SECRET_PATTERNS)[-TAIL:]


def _event(name: str, facts: object, line: int | None = None) -> str:
    """One event; its data is JSON in ASCII, on one line."""
    number = "" if line is None else f"id: {line}\n"
    return f"{number}event: {name}\ndata: {json.dumps(facts)}\n\n"
