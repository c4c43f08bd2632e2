"""The conversation as data: what was said, what the model replied, what its calls returned.

Everything is stored as it came. Arguments stay the text that the model wrote, and the vendor's own reply is kept in
`raw`, so that what goes back to the vendor is byte for byte what it sent.
"""

from typing import Annotated, Literal

import msgspec

from replay.values import Local, Text

Stop = Literal["stop", "tool_calls", "length", "refusal", "pause"]
How = Literal["ran", "found", "stated", "refused", "failed", "invalid", "responded", "output", "no_output"]
Purpose = Literal["turn", "summary"]

HAPPENED: frozenset[str] = frozenset({"ran", "found", "stated"})
"""The kinds of result that say that the call took effect."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of one request. `input_tokens` includes those read from or written to a provider's cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class CostBound(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The most that one request can cost: logged before it is sent, and counted as spent if its reply is lost.

    `dollars` is None when no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call in a reply; `arguments` is the raw text the model wrote.

    `id` is `<turn>.<index>`, given when the reply is saved.
    """

    tool: str
    arguments: Text = "{}"
    provider_id: str = ""
    id: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One complete reply of a model.

    `dollars` is None when its price is unknown; `lossy` says that text had to be replaced.
    """

    text: Text = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    dollars: float | None = 0.0
    stop: Stop = "stop"
    model: str = ""
    raw: Annotated[str, Local] = ""
    lossy: bool = False


class Image(msgspec.Struct, frozen=True, gc=False):
    """A picture that a tool returned, for models that see: its media type, such as `image/png`, and its base64."""

    mime: str
    data: Annotated[str, Local]


class Result(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a call, as the model reads it. `images` are those that its text names."""

    call: str
    tool: str
    provider_id: str
    how: How
    text: Text
    images: tuple[Image, ...] | msgspec.UnsetType = msgspec.UNSET


class UserMessage(msgspec.Struct, frozen=True, gc=False, tag="user", tag_field="type"):
    """Text from the user's side: the task, or a note of the runner's own (for example that files were accepted)."""

    text: Text


class AssistantMessage(msgspec.Struct, frozen=True, gc=False, tag="assistant", tag_field="type"):
    """A saved reply."""

    reply: Reply


class ToolResults(msgspec.Struct, frozen=True, gc=False, tag="tool_results", tag_field="type"):
    """The results of one reply's calls, in the order of the calls."""

    results: tuple[Result, ...]


Message = UserMessage | AssistantMessage | ToolResults
