"""The environment of one scenario: what is outside the simulated process and survives it, and what really happened.

What happened is known from the user's own count, never from the log: an effect happened when the count changed while a
call's body ran. So a simulated person can answer truthfully, and a result that says otherwise is found.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Generic, NotRequired, TypedDict, TypeVar

import eventlog
import runner
from eventlog.simdisk import Machine, Process
from runner.testing._leased_disk import LeasedDisk, Leases
from runner.testing._virtual import VirtualClock, VirtualTime

W = TypeVar("W")
RUNS: Final = Path("/runs")
RUN: Final = "swept"
Decide = Callable[[runner.Question], runner.Answer | None]
_OTHER_PID: Final = 999


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
        """How often each effect has happened by now."""
        return {name: number for name, number in self.effects(outside).items() if number}


@dataclass
class LateEffect:
    """An effect that happens `within` seconds after its attempt was given up, whether or not the process is alive."""

    act: Callable[[], Awaitable[object]]
    within: float
    due: float | None = None
    landed: bool = False


def _declared(tool: runner.Tool) -> dict[str, object]:
    """What a tool declares, as far as it can be compared between processes."""
    facts = ("effect", "key_ttl", "once_per", "timeout", "attempts", "visible_within", "parallel")
    return {
        **{fact: getattr(tool, fact) for fact in facts},
        "approval": "a function" if callable(tool.approval) else tool.approval,
        "lookup": "declared" if tool.find is not None else "not declared",
    }


@dataclass(frozen=True)
class Attempt:
    """One attempt of a call in the undisturbed run, and what its tool declares."""

    call: str
    tool: str
    effect: str
    asks_service: bool
    visible_within: float
    in_thread: bool


class _Runs(eventlog.Directory):
    """The runs at the time of the scenario: what others write must not be ahead of it."""

    def __init__(self, time: VirtualTime, disk: eventlog.Disk) -> None:
        super().__init__(RUNS, disk=disk)
        self._clock = VirtualClock(time)

    def now(self) -> datetime:
        return self._clock.wall()


@dataclass
class SimulatedEnvironment:
    """What one scenario is run in. `outside` is what the user's factory made; `effects` counts what happened there.

    `acted` is how often each call acted, `weights` how many effects it had, `values` what its body returned last;
    `replies` how often the model replied in each turn; `saved` how many turns of each run were on the disk at the last
    death; `paths` are what stands before the ids of calls, in the run and in its children;
    `looked` how often the failing call's lookup was asked; `asked` are the ladder's questions, each with its call, and
    `wrong_answers` those answered wrongly.
    `answers` is how often a person was asked; `left` is true after nobody answered and somebody else did later; `sent`:
    somebody has written to the run. `leases` hold it and its children, where a database would keep them.
    """

    folder: Path
    outside: Any
    inputs: Inputs
    machine: Machine = field(default_factory=Machine)
    time: VirtualTime = field(default_factory=VirtualTime)
    acted: Counter[str] = field(default_factory=Counter)
    weights: dict[str, int] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    replies: Counter[tuple[str, str]] = field(default_factory=Counter)
    saved: dict[str, int] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    looked: int = 0
    late: list[LateEffect] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    wrong_answers: dict[str, str] = field(default_factory=dict)
    answers: int = 0
    left: bool = False
    sent: bool = False
    problems: list[str] = field(default_factory=list)
    declared: dict[str, dict[str, object]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    leases: Leases | None = None

    def effects(self) -> dict[str, int]:
        """How often each effect has happened by now; those that never did are left out."""
        return self.inputs.counts(self.outside)

    def others(self) -> eventlog.Directory:
        """The runs as another process opens them."""
        disk = Process(self.machine, _OTHER_PID)
        return _Runs(self.time, LeasedDisk(disk, self.leases) if self.leases is not None else disk)

    @property
    def paid_twice(self) -> int:
        return sum(times - 1 for times in self.replies.values())

    def compare(self, agent: runner.Agent[Any, Any, Any]) -> None:
        """Compare what an agent's tools declare with what they declared in the first process."""
        now = {tool.name: _declared(tool) for tool in agent.tools}
        first, self.declared = self.declared or now, self.declared or now
        for name, declared in first.items():
            for fact, value in declared.items():
                found = now[name][fact] if name in now else "missing"
                if found != value:
                    self.problems.append(f"{name} differs in a later process: its {fact} was {value}, then {found}")

    @contextlib.contextmanager
    def noting(self, call: str) -> Iterator[None]:
        """Whatever happens meanwhile is this call's."""
        before = self._counted({})
        try:
            yield
        finally:
            after = self._counted(before)
            if after != before:
                self.acted[call] += 1
                self.weights[call] = sum(abs(after.get(name, 0) - before.get(name, 0)) for name in {*after, *before})

    def _counted(self, otherwise: dict[str, int]) -> dict[str, int]:
        """What has happened by now; where the user's own count fails, that is no failure of the tool."""
        try:
            return self.effects()
        except Exception as error:  # noqa: BLE001 (the user's)
            self.problems.append(f"what happened can't be counted: {error!r}")
            return otherwise

    async def landed(self) -> None:
        """Wait until every late effect has happened."""
        due = [late.due or 0.0 for late in self.late if not late.landed]
        if due:
            await asyncio.sleep(max(due) - self.time.now + 1)
