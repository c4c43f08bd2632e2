"""What a model is to the runner: something that takes a request and gives one complete reply.

A request is built from the state alone, so its bytes are stable across a resume and a provider's prompt cache still
hits. Before it is sent, the most it can cost is logged (spec row 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from replay import Bound, Message, Reply


class ToolSpec(NamedTuple):
    """A tool as the model sees it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """One ask. `turn` counts the saved replies so far plus one; `purpose` is `turn` or `summary`.

    `parameters` are passed to the provider as they are. `n` counts asks in a row without a reply, from 1. `at` is the
    log's time of the ask, by which it is priced; it is no part of what is sent.
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


class Model(Protocol):
    """What an agent's model offers."""

    name: str

    def bound(self, request: Request) -> Bound:
        """The most that `request` can cost. Pure: the same request, the same bound."""
        ...

    async def ask(self, request: Request) -> Reply:
        """One complete reply.

        Raises `runner.ModelError` when there is none; any other exception counts as transient, and as perhaps billed.
        """
        ...
