"""A lead that hands tasks to clerks, and what they did."""

from __future__ import annotations

from typing import Any

import replay
import runner
from eventlog import Directory
from runner.testing import ScriptedModel, tool_calls

PAID: list[str] = []
"""What was paid in this test."""


@runner.tool(effect="idempotent", approval=lambda arguments: "ask" in arguments["order"])
def pay(order: str) -> str:
    """Pay an order; a person must say yes to those that say `ask`."""
    PAID.append(order)
    return f"paid {order}"


def paying(*more: Any, dollars: float = 0.25, **options: Any) -> runner.Agent:
    """A clerk that pays what its task says, replies as told, and answers."""
    script = [lambda request: tool_calls(("pay", {"order": request.messages[0].text}), dollars=dollars), *more]
    return runner.Agent(name="clerk", model=ScriptedModel([*script, "It is paid."]), tools=[pay], **options)


def lead(*tasks: str, clerk: runner.Agent | None = None, end: Any = ("All is done.",), **options: Any) -> runner.Agent:
    """An agent that gives a clerk these tasks in one reply."""
    PAID.clear()
    given = tool_calls(*(("clerk", {"task": task}) for task in tasks), dollars=0.25)
    return runner.Agent(
        name="lead", model=ScriptedModel([given, *end]), tools=[runner.as_tool(clerk or paying())], **options
    )


def start(agent: runner.Agent, runs: Directory, **options: Any) -> runner.Outcome[Any]:
    """Start the run `p`."""
    return runner.start_sync(agent, "Have them paid.", runs=runs, run="p", **options)


def resume(agent: runner.Agent, runs: Directory, **options: Any) -> runner.Outcome[Any]:
    """Resume it."""
    return runner.resume_sync("p", agent, runs=runs, **options)


def children(runs: Directory, run: str = "p") -> list[str]:
    """The child runs of a run, in the order of its calls."""
    started = [event for event in events(runs, run) if isinstance(event, replay.events.ChildStarted)]
    return list(dict.fromkeys(event.run for event in started))


def events(runs: Directory, run: str = "p") -> list[replay.AnyEvent]:
    """Every event of a run."""
    return [replay.decode(raw) for line in runs.read(run).lines for raw in line.events]


def counts(runs: Directory, upto: int) -> dict[str, int]:
    """How many children had begun up to a line, and how many results there were."""
    found = [replay.decode(raw) for line in runs.read("p").lines if line.seq <= upto for raw in line.events]
    began = {event.run for event in found if isinstance(event, replay.events.ChildStarted)}
    return {"child": len(began), "result": sum(isinstance(e, replay.events.ResultRecorded) for e in found)}


def spent(runs: Directory, *names: str) -> float:
    """The dollars of all replies in some runs, and the bounds of their lost requests."""
    total = 0.0
    for name in names:
        total += sum(e.reply.dollars or 0.0 for e in events(runs, name) if isinstance(e, replay.events.ReplySaved))
    return total
