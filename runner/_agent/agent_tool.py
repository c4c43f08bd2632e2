"""A tool that is an agent: a call of it is a run of its own, a child of the run that calls it."""

from collections.abc import Callable, Iterable
from typing import Any

from runner._agent import declaration
from runner._agent.agent import Agent, AnyAgent
from runner._agent.declaration import Accepted, Approval
from runner._agent.tools import Tool
from runner.errors import BadTool

DEEPEST = 5
"""How many child runs may be nested in one another."""
_ABOUT = (
    "Gives a task to the agent {0}, which works on it by itself and answers. It knows nothing of this conversation: "
    "`task` must say all that it needs."
)


GIVEN: Accepted = {
    "agent": (lambda v: isinstance(v, Agent), "a runner.Agent"),
    "agents": (lambda v: declaration.several(v, Agent), "a list of agents"),
}
"""What may be given as an agent, or as several."""


def check(**given: object) -> None:
    """Raise `BadAgent` for what is no agent, or no list of agents."""
    declaration.check(GIVEN, given)


class AgentTool(Tool[Any, Any]):
    """A tool whose calls are child runs of `agent`; so many are nested in it as its `depth` says, it included."""

    def __init__(self, agent: AnyAgent, about: str | None, **options: Any) -> None:
        super().__init__(_takes(agent), effect="idempotent", **options)
        self.agent = agent
        self.description = about or _ABOUT.format(agent.name)
        inner = (tool.depth for tool in agent.tools if isinstance(tool, AgentTool))
        self.depth: int = 1 + max(inner, default=0)
        if self.depth > DEEPEST:
            raise BadTool(self.name, f"its child runs would be nested {self.depth} deep, and {DEEPEST} is the most")


def nested(agents: Iterable[AnyAgent]) -> dict[str, AnyAgent]:
    """These agents and those of their child runs, by name; of two with one name the outer one."""
    found = {agent.name: agent for agent in agents}
    for agent in list(found.values()):
        inner = nested(tool.agent for tool in agent.tools if isinstance(tool, AgentTool))
        found = inner | found
    return found


def _takes(agent: AnyAgent) -> Callable[..., None]:
    """A function of a task, and of inputs where the agent declares some: only its signature is used."""

    def task_alone(task: str) -> None:
        """Never called."""

    def task_and_inputs(task: str, inputs: Any) -> None:
        """Never called."""

    task_and_inputs.__annotations__ = {"task": str, "inputs": agent.inputs}
    return task_alone if agent.inputs is None else task_and_inputs


def as_tool(
    agent: AnyAgent,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    approval: Approval = False,
    max_calls: int | None = None,
) -> Tool:
    """Make an agent a tool of another: a call of it is a run of its own, whose answer is the call's result.

    The tool takes `task`, and `inputs` where the agent declares some. The child run is in the same place as its parent,
    is named `<agent>-<16 hex digits>`, and is carried on by the process that carries its parent on, in the parent's
    slot. While it waits, for a person or a time, its parent does. Its questions are the parent's too, each named by the
    call, a colon and its id, as `2.0:1.0-approve`. It may use what its parent's limits leave, divided among children
    that run side by side, and at most its agent's own limits. It has no workspace.

    Args:
        agent: The agent; its own tools may be agents, five deep at most.
        name: What the model calls it by. Default the agent's name.
        description: What the model reads about it. Default: that it works by itself and must be told all it needs.
        approval: As for `tool`.
        max_calls: As for `tool`.

    Raises:
        BadTool: The name can't be a tool's, or it is nested too deep.
        BadAgent: It is no agent.
    """
    check(agent=agent)
    return AgentTool(agent, description, name=name or agent.name, approval=approval, max_calls=max_calls)
