"""What a user says about the tools of a server: the effect of a repeat, and the rest of a tool's declaration.

A server's annotations are hints from a stranger: the protocol says so itself. So nothing is taken from them unless the
user trusts that server, and what nobody vouched for is `once` (spec row 20: unknown is unsafe).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import mcp

from runner import BadTool, Call

Effect = Literal["reads", "idempotent", "keyed", "once"]
Lookup = Callable[[Call], Any]


@dataclass(frozen=True)
class Terms:
    """How a server's tool is declared. The fields are those of `runner.tool` and of `Tool.lookup`.

    `refused`: codes of protocol errors with which this server answers before it has done anything, such as -32602 for
    invalid arguments. Every other error of a call leaves it open.
    """

    effect: Effect = "once"
    remembers: timedelta | None = None
    approval: bool | Callable[[Mapping[str, Any]], bool] = False
    once_per: Sequence[str] = ()
    timeout: float = 60.0
    attempts: int = 3
    secret: Sequence[Any] = ()
    lookup: Lookup | None = None
    lands_within: float | None = None
    refused: Collection[int] = ()


Trust = Terms | Effect | Callable[[mcp.Tool], "Terms | Effect"]
"""What is said about a tool: its terms, its effect alone, or a function of what the server lists."""


def hints(tool: mcp.Tool) -> Terms:
    """Believe a tool's annotations: for servers that the user trusts.

    `readOnlyHint` means `reads`, `idempotentHint` `idempotent`, anything else `once`, which needs a yes unless
    `destructiveHint` is false. Unset hints count as the protocol says: not read-only, destructive, not idempotent.
    """
    said = tool.annotations
    if said is not None and said.read_only_hint:
        return Terms(effect="reads")
    harmless = said is not None and said.destructive_hint is False
    return Terms(effect="idempotent" if said is not None and said.idempotent_hint else "once", approval=not harmless)


def of(tool: mcp.Tool, trust: Trust | Mapping[str, Trust]) -> Terms:
    """The terms of a listed tool. A mapping names tools; what it does not name is `once`."""
    said = trust.get(tool.name, "once") if isinstance(trust, Mapping) else trust
    if callable(said):
        said = said(tool)
    return said if isinstance(said, Terms) else Terms(effect=said)


def check(listed: Collection[str], trust: Trust | Mapping[str, Trust]) -> None:
    """Raise `BadTool` when `trust` names a tool that the server does not list: a typing error must not go unseen."""
    for name in trust if isinstance(trust, Mapping) else ():
        if name not in listed:
            raise BadTool(name, f"the server lists no such tool (it lists {', '.join(sorted(listed)) or 'none'})")
