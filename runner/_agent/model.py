"""What a model is to the runner: something that takes a request and gives one complete reply.

A request is built from the state alone, so its bytes are stable across a resume and a provider's prompt cache still
hits. Before it is sent, the most it can cost is logged.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from replay.messages import CostBound, Message, Reply


class ToolSpec(NamedTuple):
    """A tool as the model sees it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Request(msgspec.Struct, frozen=True):
    """One ask. `turn` counts the saved replies so far plus one; `purpose` is `turn` or `summary`.

    `parameters` are passed to the provider as they are. `n` counts asks in a row without a reply, from 1. `at` is the
    log's time of the ask, by which it is priced; it is no part of what is sent. `output` is the schema that the answer
    is held to, as the model's own `output_schema` gave it.

    `heard` is there when somebody listens: a model that can stream then gives it each piece of its text as it comes,
    `heard(text)`, and of a call's arguments, `heard(text, call, tool)` with the call's place in the reply, from 0. It
    never raises, and nothing of it is saved: the reply is what `ask` returns.
    """

    run: str
    purpose: str
    turn: int
    n: int
    instructions: str
    tools: Sequence[ToolSpec]
    messages: Sequence[Message]
    parameters: Mapping[str, Any]
    at: datetime | None = None
    output: Mapping[str, Any] | None = None
    heard: Callable[..., None] | None = None


class Model(Protocol):
    """What an agent's model offers.

    It may have `output_schema(schema)`, which gives a JSON schema as it takes it in `Request.output`, or None when it
    can't be held to it.
    """

    name: str

    def bound(self, request: Request) -> CostBound:
        """The most that `request` can cost. Pure: the same request, the same bound."""
        ...

    async def ask(self, request: Request) -> Reply:
        """One complete reply.

        Raises `runner.ModelError` when there is none. Any other exception counts as perhaps billed, and as transient,
        unless it is one of a mistake in code, such as `TypeError`.
        """
        ...
