"""What every kind of sweep is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

import runner

W = TypeVar("W")
Decide = Callable[[runner.Question], runner.Answer | None]
Reword = Callable[[runner.Reply], runner.Reply]
Without = Literal["keys", "lookups"]


class Swept(TypedDict, Generic[W]):
    """What every kind of sweep is given; `sweep` says what each means."""

    environment: Callable[[Path], W]
    agent: Callable[[W], runner.Agent[Any, Any, Any]]
    task: str
    effects: Callable[[W], Mapping[str, int]]
    inputs: NotRequired[object]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What every process of every scenario is made from; who decides approvals, and what is written to the run."""

    environment: Callable[[Path], Any]
    agent: Callable[[Any], runner.Agent[Any, Any, Any]]
    task: str
    effects: Callable[[Any], Mapping[str, int]]
    inputs: object = None
    decide: Decide | None = None
    message: str = ""

    def __post_init__(self) -> None:
        for name in ("environment", "agent", "effects"):
            if not callable(given := getattr(self, name)):
                raise runner.BadAgent(f"{name} is {given!r:.200}, not a function")

    def made(self, outside: Any) -> runner.Agent[Any, Any, Any]:
        """The agent for one process. Raises `BadAgent` when what the function makes is none."""
        agent = self.agent(outside)
        if not isinstance(agent, runner.Agent):
            raise runner.BadAgent(f"what `agent` makes is {agent!r:.200}, not a runner.Agent")
        return agent

    def counts(self, outside: Any) -> dict[str, int]:
        """How often each effect has happened by now; those that never did are left out."""
        return {name: number for name, number in self.effects(outside).items() if number}
