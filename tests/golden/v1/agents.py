"""The agents that the histories beside this file were made with. They stay as they are, so that a retrace is fair.

No body runs: a retrace asks what is declared, and what a model says that an ask may cost.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import runner
from runner import CostBound, Limits, Reply
from runner._agent.agent_tool import as_tool

HERE = Path(__file__).parent
KEPT = timedelta(hours=1)


@dataclass
class Priced:
    """A model that is only asked what an ask may cost."""

    name: str = "priced"
    most: CostBound = field(default_factory=lambda: CostBound(input_tokens=1000, output_tokens=100, dollars=0.5))

    def bound(self, request: runner.Request) -> CostBound:  # noqa: ARG002 (a model's signature)
        """The same for every request."""
        return self.most

    async def ask(self, request: runner.Request) -> Reply:
        """Never asked: replies are in the histories."""
        raise AssertionError(request)


class Logged:
    """A model whose bounds are those that a history holds, by turn, purpose and number of the ask."""

    name = "logged"

    def __init__(self, bounds: Mapping[str, Mapping[str, Any]]) -> None:
        self._bounds = bounds

    def bound(self, request: runner.Request) -> CostBound:
        """What the history says of this ask."""
        return CostBound(**self._bounds[f"{request.turn} {request.purpose} {request.n}"])

    async def ask(self, request: runner.Request) -> Reply:
        """Never asked."""
        raise AssertionError(request)


def odd(arguments: Mapping[str, Any]) -> bool:
    """An approval's predicate: one cause needs none, one needs a yes, any other makes the predicate raise."""
    return {"a": False, "b": True}[arguments["cause"]]


def make(
    name: str,
    effect: Literal["reads", "idempotent", "keyed", "non_idempotent"],
    *,
    lookup: bool = False,
    visible_within: float | None = None,
    once_per: Sequence[str] = (),
    approval: Any = False,
) -> runner.Tool:
    """A tool of this effect that takes a `cause`, and may take a `note`."""

    @functools.partial(
        runner.Tool,
        name=name,
        effect=effect,
        key_ttl=KEPT if effect == "keyed" else None,
        approval=approval,
        once_per=once_per,
        timeout=10,
    )
    def body(cause: str, note: str = "") -> str:
        raise AssertionError(cause, note)

    if lookup:

        @body.lookup(visible_within=visible_within)
        def find(call: runner.Call) -> runner.Unsure:
            raise AssertionError(call)

    return body


LOOK = make("look", "reads")
PUT = make("put", "idempotent")
PAY = make("pay", "keyed", lookup=True, visible_within=30, once_per=("cause",), approval=odd)
PUSH = make("push", "keyed")
PATCH = make("patch", "non_idempotent", lookup=True, visible_within=20)
SEND = make("send", "non_idempotent", approval=True)
RING = make("ring", "non_idempotent")
TOOLS = (LOOK, PUT, PAY, PUSH, PATCH, SEND, RING)


def shop(*tools: runner.Tool, **options: Any) -> runner.Agent:
    """An agent with these tools, or with all of the above."""
    return runner.Agent(model=Priced(), tools=tools or TOOLS, instructions="Keep the shop.", name="shop", **options)


def batch() -> runner.Agent:
    """The agent of the triage job's batch as it was, from its declarations."""
    facts = json.loads((HERE / "batch.json").read_text(encoding="utf-8"))
    return runner.Agent(
        model=Logged(facts["bounds"]),
        tools=[_declared(**tool) for tool in facts["tools"]],
        instructions=facts["instructions"],
        name="batch",
        context=runner.SummariseAfter(**facts["context"]),
        limits=Limits(**facts["limits"]),
        approve="off",
    )


def _declared(
    *, key_ttl: float | None, visible_within: float | None, description: str, schema: dict[str, Any], **declared: Any
) -> runner.Tool:
    @functools.partial(
        runner.Tool,
        key_ttl=timedelta(seconds=key_ttl) if key_ttl is not None else None,
        schema={**schema, "description": description},
        **declared,
    )
    def body(call: runner.Call) -> None:
        raise AssertionError(call)

    if visible_within is not None:

        @body.lookup(visible_within=visible_within)
        def find(call: runner.Call) -> runner.Unsure:
            raise AssertionError(call)

    return body


CLERK = runner.Agent(
    name="clerk", model=Priced(), tools=(PAY,), instructions="Pay what you are told to.", limits=Limits(turns=6)
)
AGENTS: dict[str, runner.Agent] = {
    "shop": shop(),
    "few turns": shop(limits=Limits(turns=1)),
    "more turns": shop(limits=Limits(turns=5, dollars=9.0)),
    "few tokens": shop(limits=Limits(tokens=500)),
    "few dollars": shop(limits=Limits(dollars=0.4)),
    "few resumes": shop(limits=Limits(resumes=1)),
    "off": shop(approve="off"),
    "brief": shop(context=runner.SummariseAfter(tokens=400, keep=2)),
    "typed": shop(output=list[str], output_retries=1),
    "hurried": shop(
        limits=Limits(until=datetime(2026, 1, 1, 2, tzinfo=UTC)), answer_within=KEPT, context=runner.KeepLast(3)
    ),
    "office": runner.Agent(
        name="office", model=Priced(), tools=(LOOK, as_tool(CLERK)), limits=Limits(turns=9, dollars=4.0)
    ),
    "clerk": CLERK,
    "deployed": shop(LOOK, make("ring", "idempotent"), make("patch", "non_idempotent")),
}
"""Every agent that a history names, one for each of its lives."""


def agent(name: str) -> runner.Agent:
    """The agent of this name."""
    return batch() if name == "batch" else AGENTS[name]
