"""What every kind of sweep is given, and what is wrong with it when it can't be swept."""

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
        """How often each effect has happened by now; those that never did are left out. Raises `BadAgent`."""
        found: Any = self.effects(outside)
        if not (isinstance(found, Mapping) and all(isinstance(number, int) for number in found.values())):
            raise runner.BadAgent(f"what `effects` gives is {found!r:.200}, not numbers by name")
        return {name: number for name, number in found.items() if number}


class NotRepeatable(runner.RunError):
    """Two undisturbed runs of the same agent differ, so no death can be put at the same point twice.

    `first` and `second` are the first points that differ; `why` is how the first one ended when it did not finish.
    """

    hint = "Make the agent and its environment depend on nothing but their arguments: no clock, no random numbers."
    first: str
    second: str
    why: str = ""

    def __str__(self) -> str:
        if self.why:
            return f"the undisturbed run did not finish: {self.why}"
        return f"two undisturbed runs differ: {self.first!r} in the first, {self.second!r} in the second"


class NothingToCount(runner.RunError):
    """In the undisturbed run no tool that acts was called, or no effect was counted: a sweep would prove nothing."""

    hint = "Let the model call the tools that act, and let `effects` count what they do."
    acted: bool

    def __str__(self) -> str:
        what = "no effect was counted" if self.acted else "no tool that acts was called"
        return f"{what} in the undisturbed run"


class NoSuchScenario(runner.RunError):
    """A sweep has no scenario of this id."""

    sentence = "the sweep has no scenario {id!r}"
    hint = "Take an id from a failure, and sweep the same agent with the same `without` and `seed`."
    id: str
