"""The world of one scenario: what is outside its simulated processes and survives them, and what really happened.

What happened is known from the user's own count, never from the log: an effect happened when the count changed while a
call's body ran. So a simulated person can answer truthfully, and a result that says otherwise is found.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Self

from msgspec.structs import asdict

import eventlog
import replay
import runner
from eventlog.simdisk import Machine, Process
from runner.testing._history import RUN, RUNS, Family, family
from runner.testing._inputs import Inputs, Reword, Without
from runner.testing._leased_disk import LeasedDisk, Leases
from runner.testing._service_faults import Attempt, ServiceFault
from runner.testing._virtual import VirtualClock, VirtualTime

AnswerMode = Literal["truth", "wrong", "nobody", "refuses"]
_OTHER_PID: Final = 999


@dataclass
class LateEffect:
    """An effect that happens `within` seconds after its attempt was given up, whether or not the process is alive."""

    act: Callable[[], Awaitable[object]]
    within: float
    due: float | None = None
    landed: bool = False

    def schedule(self) -> None:
        """Have it happen in the running loop when it is due."""
        loop = asyncio.get_running_loop()
        landing: list[asyncio.Task[None]] = []  # a loop holds no strong reference to a task
        loop.call_at(max(loop.time(), self.due or 0.0), lambda: landing.append(loop.create_task(self.land())))

    async def land(self) -> None:
        if not self.landed:
            self.landed = True
            with contextlib.suppress(Exception):  # the client is gone, so nobody reads the service's error
                await self.act()


class _Runs(eventlog.Directory):
    """The runs at the time of the scenario: what others write must not be ahead of it."""

    def __init__(self, time: VirtualTime, disk: eventlog.Disk) -> None:
        super().__init__(RUNS, disk=disk)
        self._clock = VirtualClock(time)

    def now(self) -> datetime:
        return self._clock.wall()


@dataclass
class World:
    """What one scenario is played in: how it is disturbed, and what came of that.

    `outside` is what the user's factory made; `effects` counts what happened there.

    What disturbs it, besides the deaths that `play` is told: the service treats a call as `fault` says; `without` is
    taken away; `answer_mode` is how a person answers, `reword` what the model says when asked again. With `cut` the
    power fails at the first death; it leaves the image of this number, drawn by `seed`. `event` happens at the points
    that `play` is told, and may act as the run's own process or as another one; `mail` is what somebody says then.
    `loss`: leases hold the run and its children, as a database would keep them, and its process loses them by being
    frozen or cut off, and lives on beside the one that takes over.

    What came of it: `passed` are the points of each process, one that left a question to lapse counting as one with the
    next; `how` the run ended: finished, paused, or why not, with `error`; `deaths` the calls that were in doubt on the
    disk at each death; `said` the lines after which somebody said `mail`; `lost` whether the leases were.
    `acted` is how often each call acted, `weights` how many effects it had, `values` what its body returned last;
    `replies` how often the model replied in each turn; `saved` how many turns of each run were on the disk at the last
    death; `paths` are what stands before the ids of calls, in the run and in its children;
    `looked` how often the failing call's lookup was asked; `asked` are the ladder's questions, each with its call, and
    `wrong_answers` those answered wrongly; `refused` are the calls whose approval was.
    `answers` is how often a person was asked; `left` is true after nobody answered and somebody else did later; `sent`:
    somebody has written to the run.
    """

    folder: Path
    outside: Any
    inputs: Inputs

    fault: ServiceFault | None = None
    without: Collection[Without] = ()
    answer_mode: AnswerMode = "truth"
    reword: Reword | None = None
    cut: int | None = None
    seed: int = 0
    event: Callable[[Self], object] | None = None
    mail: Literal["park", "stop"] = "park"
    loss: Literal["", "frozen", "cut"] = ""

    machine: Machine = field(default_factory=Machine)
    time: VirtualTime = field(default_factory=VirtualTime)
    leases: Leases | None = None
    disk: eventlog.Disk | None = None
    task: asyncio.Task[Any] | None = None
    lives: int = 0

    passed: list[list[str]] = field(default_factory=list)
    how: str = ""
    error: Exception | None = None
    state: replay.State = replay.NEW
    deaths: list[tuple[str, ...]] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    lost: bool = False
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

    def __post_init__(self) -> None:
        if self.loss:
            self.leases = Leases(RUNS, self.time)

    def effects(self) -> dict[str, int]:
        """How often each effect has happened by now; those that never did are left out."""
        return self.inputs.counts(self.outside)

    def others(self) -> eventlog.Directory:
        """The runs as another process opens them."""
        return _Runs(self.time, self.held(Process(self.machine, _OTHER_PID)))

    def held(self, disk: eventlog.Disk) -> eventlog.Disk:
        """A process's disk, where leases hold the runs with theirs."""
        return LeasedDisk(disk, self.leases) if self.leases is not None else disk

    def logs(self) -> eventlog.Directory:
        """The runs as they are on the disk now, whoever holds them."""
        return eventlog.Directory(RUNS, disk=Process(self.machine))

    def family(self) -> Family:
        return family(self.logs(), RUN)

    def name(self, run: str, id: object) -> str:  # noqa: A002 (of a call, or of a turn)
        """What a call or a turn is called in the whole family: a child's by the path to it."""
        if run not in self.paths:
            self.paths = {run: path for run, (path, _) in self.family().items()}
        return f"{self.paths.get(run, '')}{id}"

    @property
    def paid_twice(self) -> int:
        return sum(times - 1 for times in self.replies.values())

    def compare(self, agent: runner.Agent[Any, Any, Any]) -> None:
        """Compare what an agent's tools declare with what they declared in the first process."""
        now = {tool.name: asdict(tool.definition) for tool in agent.tools}
        self.declared = self.declared or now
        for name, declared in self.declared.items():
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
        """Wait until every late effect has happened: one that is due now takes a moment."""
        await asyncio.sleep(max((late.due or 0.0 for late in self.late), default=self.time.now - 1) + 1 - self.time.now)
