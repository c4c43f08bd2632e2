"""The stage: what is outside of a simulated process and outlives it, with the truth that no log is asked for.

The truth is what the user's own count says: an effect happened when the count changed while a call's body ran. So a
person on this stage can answer rightly, and a result that says otherwise is found out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner.crashtest._machine import Machine
from runner.crashtest._virtual import Time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runner.crashtest._subject import Subject

RUNS: Final = Path("/runs")
RUN: Final = "swept"


@dataclass
class Late:
    """An effect on its way: it lands `within` seconds after the attempt was lost, whatever became of the process."""

    act: Callable[[], Awaitable[object]]
    within: float
    due: float | None = None
    landed: bool = False
    error: Exception | None = None


@dataclass(frozen=True)
class Played:
    """One attempt of a call, as it was played: whether it acts, how, and what is declared of it."""

    call: str
    tool: str
    n: int
    effect: str
    asks_service: bool
    lands_within: float
    in_thread: bool


@dataclass
class Stage:
    """One scenario's outside. `effects` counts what happened in `world`.

    `acted` is how often each call acted, `values` what its body returned last; `heard` how often the model replied for
    each turn; `saved` how many turns are on the disk at the last death; `looked` how often the troubled call's service
    was asked; `asked` are the ladder's questions that were put, each with its call, and `lies` those answered wrongly.
    `answers` is how many a person gave, `left` says that nobody answered, and then somebody came by.
    """

    folder: Path
    world: Any
    subject: Subject
    machine: Machine = field(default_factory=Machine)
    time: Time = field(default_factory=Time)
    acted: Counter[str] = field(default_factory=Counter)
    values: dict[str, object] = field(default_factory=dict)
    attempts: list[Played] = field(default_factory=list)
    heard: Counter[tuple[str, int]] = field(default_factory=Counter)
    saved: int = 0
    looked: int = 0
    late: list[Late] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    lies: dict[str, str] = field(default_factory=dict)
    answers: int = 0
    left: bool = False
    problems: list[str] = field(default_factory=list)

    def effects(self) -> dict[str, int]:
        """How often each effect has happened by now; one that never did need not be named."""
        return self.subject.happened(self.world)

    async def act(self, call: str, body: Callable[[], Awaitable[object]]) -> object:
        """Let a body act, and note whether anything happened, even if it is cut off."""
        before = self.effects()
        try:
            value = await body()
            self.values[call] = value
        finally:
            if self.effects() != before:
                self.acted[call] += 1
        return value

    async def landed(self) -> None:
        """Wait until everything that is on its way has landed."""
        due = [late.due or 0.0 for late in self.late if not late.landed]
        if due:
            await asyncio.sleep(max(due) - self.time.now + 1)
