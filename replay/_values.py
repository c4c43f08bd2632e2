"""The values that events and states are made of, beside the conversation's own."""

from __future__ import annotations

from typing import Literal

import msgspec

Effect = Literal["reads", "idempotent", "keyed", "once"]
Phase = Literal["new", "model", "tools", "paused", "done"]
Kind = Literal["approve", "settle"]
Verdict = Literal["approve", "refuse", "rerun", "done"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may use in its whole life (spec rows 3 and 4); None is no limit. Tokens are input + output."""

    turns: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    resumes: int = 10


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
    """Digests of what the agent was made of when a life opened: a change between two lives is drift."""

    instructions: str
    tools: dict[str, str]
    parameters: str
    context: str


class Digests(msgspec.Struct, frozen=True, kw_only=True):
    """Digests of one request's parts. Requests are not stored, so that a log's bytes stay linear in its history."""

    instructions: str
    tools: str
    messages: str
    parameters: str


class FileHash(msgspec.Struct, frozen=True, kw_only=True):
    """A file's content: `sha256` in hex, or None for "no such file" (absence is a content too)."""

    path: str
    sha256: str | None


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """An effect of a fork's parent after the fork's line: it is in the world, and must not be made twice.

    `run` and `call` say whose it is, `text` what it came to. `happened` is False when nobody knows whether it did.
    """

    tool: str
    intent: str | None
    arguments: str
    call: str
    text: str
    run: str = ""
    happened: bool = True
