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

    def counts(self, outside: Any) -> dict[str, int]:
        """How often each effect has happened by now; those that never did are left out."""
        return {name: number for name, number in self.effects(outside).items() if number}
