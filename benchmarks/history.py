"""A history as refold's own loop writes it, made without a loop: what the benchmarks save, read and fold.

A turn is two lines: the reply with the marker of its call, and the call's result with the next ask. Texts are random,
because constant text lets a serialiser or a disk share it; the seed is fixed, so that every arm writes the same bytes.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from datetime import UTC, datetime

import replay
from replay import Event
from replay.events import AttemptMarked, ModelAsked, ReplySaved, ResultRecorded, RunStarted
from replay.messages import CostBound, Reply, ToolCall, Usage
from replay.values import Definitions, Digests, Limits, ToolDefinition

AT = datetime(2026, 11, 29, 15, 14, 58, 123456, UTC)
LINE = 1500
"""Bytes of a line, as in the figures that the targets were taken from."""
_HEX = "0123456789abcdef" * 2
_FIXED = 640
"""Bytes of a line that are not text: its frame, names, digests."""
_DIGESTS = Digests(instructions=_HEX, tools=_HEX, messages=_HEX, parameters=_HEX)
_ASKED = ModelAsked(
    purpose="turn", n=1, upto=0, bound=CostBound(input_tokens=900, output_tokens=900, dollars=0.01), digests=_DIGESTS
)


def text(source: random.Random, size: int) -> str:
    """So many random characters."""
    return "".join(source.choices(string.ascii_letters + string.digits + "     ", k=size))


def opening() -> list[Event]:
    """The first line: the run's start and its first ask."""
    definitions = Definitions(
        instructions=_HEX, tools={"look": ToolDefinition(digest=_HEX, effect="reads")}, parameters=_HEX, context=_HEX
    )
    started = RunStarted(
        run="r",
        agent="agent",
        task="Look at everything.",
        workspace=None,
        limits=Limits(),
        definitions=definitions,
        approve="ask",
        host="host",
        pid=1,
    )
    return [started, _ASKED]


def turn(n: int, source: random.Random, size: int = LINE) -> list[list[Event]]:
    """The two lines of turn `n` (from 1), each of about `size` bytes on disk."""
    call, words = f"{n}.0", max(size - _FIXED, 0)
    reply = Reply(
        text=text(source, words),
        calls=(ToolCall(tool="look", arguments='{"at":"it"}', provider_id=f"call_{n}", id=call),),
        usage=Usage(input_tokens=800, output_tokens=200),
        dollars=0.005,
        stop="tool_calls",
        model="model",
    )
    marked = AttemptMarked(call=call, n=1, key=_HEX, effect="reads")
    recorded = ResultRecorded(call=call, how="ran", text=text(source, words + 40), n=1)
    return [[ReplySaved(reply=reply), marked], [recorded, _ASKED]]


def saves(count: int, size: int = LINE, seed: int = 1) -> Iterator[list[Event]]:
    """The events of `count` saves behind the opening."""
    source = random.Random(seed)
    for n in range(1, count // 2 + 2):
        yield from turn(n, source, size)[: count - 2 * (n - 1)]


def encoded(count: int, size: int = LINE) -> list[list[bytes]]:
    """The same, encoded."""
    return [[replay.encode(event) for event in events] for events in saves(count, size)]
