"""What a user says about the tools of a server: the effect of a repeat, and the rest of a tool's declaration.

A server's annotations are hints from a stranger, as the protocol itself says. So they count only when the user trusts
that server, and any other tool is `non_idempotent`.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import mcp

from runner import BadTool, Call

Effect = Literal["reads", "idempotent", "keyed", "non_idempotent"]
Lookup = Callable[[Call], Any]


_OF_A_LOOKUP = ("lookup", "visible_within", "refused")


@dataclass(frozen=True)
class Terms:
    """How a server's tool is declared. The fields are those of `runner.tool` and of `Tool.lookup`.

    `refused`: codes of protocol errors with which this server answers before it has done anything, such as -32602 for
    invalid arguments. Every other error of a call leaves it open.
    """

    effect: Effect = "non_idempotent"
    key_ttl: timedelta | None = None
    approval: bool | Callable[[Mapping[str, Any]], bool] = False
    once_per: Sequence[str] = ()
    timeout: float = 60.0
    attempts: int = 3
    max_wait: float = 3600.0
    secret: Sequence[Any] = ()
    lookup: Lookup | None = None
    visible_within: float | None = None
    refused: Collection[int] = ()

    def options(self) -> dict[str, Any]:
        """What `runner.Tool` takes of them."""
        return {name: value for name, value in vars(self).items() if name not in _OF_A_LOOKUP}


def model_name(name: str) -> str:
    """The name by which a model knows a tool: providers take 1 to 64 of a-z, A-Z, 0-9, _ and -, and servers any text.

    Another name is cut and ends in eight digits of its digest, so it stays the same and no two become one.
    """
    if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{re.sub('[^a-zA-Z0-9_-]', '_', name)[:55]}_{digest[:8]}"


Trust = Terms | Effect | Callable[[mcp.Tool], "Terms | Effect"]
"""What is said about a tool: its terms, its effect alone, or a function of what the server lists."""


def hints(tool: mcp.Tool) -> Terms:
    """Believe a tool's annotations: for servers that the user trusts.

    `readOnlyHint` means `reads`, `idempotentHint` `idempotent`, anything else `non_idempotent`, which needs a yes
    unless `destructiveHint` is false. Unset hints count as the protocol says: not read-only, destructive, not
    idempotent.
    """
    said = tool.annotations
    if said is not None and said.read_only_hint:
        return Terms(effect="reads")
    harmless = said is not None and said.destructive_hint is False
    return Terms(
        effect="idempotent" if said is not None and said.idempotent_hint else "non_idempotent", approval=not harmless
    )


def of(tool: mcp.Tool, trust: Trust | Mapping[str, Trust]) -> Terms:
    """The terms of a listed tool. A mapping names tools; what it does not name is `non_idempotent`."""
    said = trust.get(tool.name, "non_idempotent") if isinstance(trust, Mapping) else trust
    if callable(said):
        said = said(tool)
    return said if isinstance(said, Terms) else Terms(effect=said)


def check(listed: Collection[str], trust: Trust | Mapping[str, Trust]) -> None:
    """Raise `BadTool` when `trust` names a tool that the server does not list: a typing error must not go unseen."""
    for name in trust if isinstance(trust, Mapping) else ():
        if name not in listed:
            raise BadTool(name, f"the server lists no such tool (it lists {', '.join(sorted(listed)) or 'none'})")
