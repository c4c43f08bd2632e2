"""Tools with every effect, and agents made of them. No body ever runs: the tests play the services themselves."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

import runner
from replay.messages import CostBound, Reply
from replay.values import Limits
from runner._agent.declaration import Approval

KEPT = timedelta(hours=1)
BOUND = CostBound(input_tokens=1000, output_tokens=100, dollars=0.5)


@dataclass
class Priced:
    """A model that is only asked what an ask may cost."""

    name: str = "priced"
    most: CostBound = field(default_factory=lambda: BOUND)

    def bound(self, request: runner.Request) -> CostBound:  # noqa: ARG002 (a model's signature)
        """The same for every request."""
        return self.most

    async def ask(self, request: runner.Request) -> Reply:
        """Never asked: replies are events that the tests write."""
        raise AssertionError(request)


def odd(arguments: Mapping[str, Any]) -> bool:
    """An approval's predicate: the first causes need a yes, the last makes the predicate raise."""
    return {"a": False, "b": True}[arguments["cause"]]


def make(  # each argument is one fact of a declaration
    name: str,
    effect: Literal["reads", "idempotent", "keyed", "non_idempotent"],
    *,
    lookup: bool = False,
    visible_within: float | None = None,
    once_per: Sequence[str] = (),
    approval: Approval = False,
    attempts: int = 3,
    timeout: float = 10,
    key_ttl: timedelta = KEPT,
) -> runner.Tool:
    """A tool of this effect that takes a `cause`."""

    @functools.partial(
        runner.Tool,
        name=name,
        effect=effect,
        key_ttl=key_ttl if effect == "keyed" else None,
        approval=approval,
        once_per=once_per,
        attempts=attempts,
        timeout=timeout,
    )
    def body(cause: str) -> str:
        raise AssertionError(cause)

    def find(call: runner.Call) -> runner.Unsure:
        raise AssertionError(call)

    if lookup:
        body.lookup(visible_within=visible_within)(find)
    return body


LOOK = make("look", "reads")
PUT = make("put", "idempotent")
PAY = make("pay", "keyed", lookup=True, visible_within=30, once_per=("cause",), approval=odd)
PUSH = make("push", "keyed")
PATCH = make("patch", "non_idempotent", lookup=True, visible_within=20)
SEND = make("send", "non_idempotent", approval=True)
TOOLS = (LOOK, PUT, PAY, PUSH, PATCH, SEND)


def agent(*tools: runner.Tool, limits: Limits | None = None, approve: Literal["ask", "off"] = "ask") -> runner.Agent:
    """An agent with these tools, or with all of the above."""
    return runner.Agent(name="agent", model=Priced(), tools=tools or TOOLS, limits=limits or Limits(), approve=approve)


def parallel(*, limit: int = 3) -> runner.Agent:
    """The agent of all these tools, each declared `parallel`."""
    return agent(*(_parallel(tool) for tool in TOOLS)).replace(parallel=limit)


def _parallel(tool: runner.Tool) -> runner.Tool:
    beside = tool.around(lambda body: body)
    beside.parallel = True
    return beside
