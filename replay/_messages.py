"""The conversation as data: what was said, what the model replied, what its calls returned.

Everything here is stored as it came (spec row 10). Arguments stay the raw string the model wrote, and a provider's own
reply is kept as text in `raw`, so that what goes back to it is byte for byte what it sent (spec row 11).
"""

from __future__ import annotations

from typing import Literal

import msgspec

Stop = Literal["stop", "tool_calls", "length", "refusal", "pause"]
How = Literal["ran", "found", "told", "refused", "failed", "invalid"]
Purpose = Literal["turn", "summary"]

HAPPENED: frozenset[str] = frozenset({"ran", "found", "told"})
"""The kinds of result that say the effect is in the world."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of one ask. `input_tokens` includes those read from or written to a provider's cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class Bound(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The most that one ask can cost: logged before it is sent, spent if its reply is lost (spec row 3).

    `dollars` is None when no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call in a reply; `arguments` is the raw text the model wrote.

    `id` is `<turn>.<index>`, given when the reply is saved (spec row 18).
    """

    tool: str
    arguments: str = "{}"
    provider_id: str = ""
    id: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One complete reply of a model.

    `dollars` is None when its price is unknown; `lossy` says that text had to be replaced.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    dollars: float | None = 0.0
    stop: Stop = "stop"
    model: str = ""
    raw: str = ""
    lossy: bool = False


class Result(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call came to, as the model reads it."""

    call: str
    tool: str
    provider_id: str
    how: How
    text: str


class Said(msgspec.Struct, frozen=True, gc=False, tag="said", tag_field="type"):
    """Text from the user's side: the task, or a note of the runner's own (an accepted workspace)."""

    text: str


class Replied(msgspec.Struct, frozen=True, gc=False, tag="replied", tag_field="type"):
    """A saved reply."""

    reply: Reply


class Answered(msgspec.Struct, frozen=True, gc=False, tag="answered", tag_field="type"):
    """The results of one reply's calls, in the order of the calls."""

    results: tuple[Result, ...]


Message = Said | Replied | Answered
