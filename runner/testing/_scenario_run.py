"""Runs one scenario from start to end: crash, resume, finish.

A scenario is a service fault, the way a person answers, and the point at which each process dies. After the last death
nothing disturbs the run, so whatever is wrong at the end went wrong before.
"""

import asyncio
import contextlib
import functools
import math
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import msgspec

import eventlog
import replay
import runner
from eventlog.simdisk import Killed, Machine, Process
from replay.events import AttemptMarked, ModelAsked, ReplySaved, ResultRecorded
from runner.testing._crash_point_disk import CrashPointDisk, RoutedDisk
from runner.testing._environment import RUN, RUNS, SimulatedEnvironment
from runner.testing._history import events_of, family, images
from runner.testing._instrumented_agent import Instruments, Reword, schedule
from runner.testing._leased_disk import LeasedDisk, Leases
from runner.testing._person import AnswerMode, Person
from runner.testing._points import CrashPoints
from runner.testing._service_faults import ServiceFault
from runner.testing._virtual import Threads, VirtualClock, VirtualLoop

REBOOT: Final = 1.0
"""Virtual seconds between a death and the next process; where leases hold the run, at least until they end."""
FROZEN: Final = 600.0
"""Virtual seconds that a frozen process sleeps after its lease's end: the next one has done its work by then."""
_MOST_LIVES: Final = 24
_LINGER: Final = 0.02
_FIRST_PID: Final = 1000
Came = tuple[str, replay.State, Exception | None]
"""How a process ended, what the run was then, and what was raised."""


@dataclass
class ScenarioRun:
    """One scenario. `passed` are the points of each process; `how` it ended: finished, paused, or why not.

    `deaths` are the calls that were in doubt on the disk at each death.
    A process that left a question to lapse counts as one with the next. With `cut` the power fails at the first death;
    it leaves the image of this number, drawn by `seed`. `event` happens at the points that `play` names, and may act as
    the run's own process or as another one. `loss`: leases hold the run and its children, and its process loses them by
    being frozen or cut off, and lives on beside the one that takes over; `lost` says whether it did.
    """

    environment: SimulatedEnvironment
    fault: ServiceFault | None = None
    without: Collection[Literal["keys", "lookups"]] = ()
    answer_mode: AnswerMode = "truth"
    reword: Reword | None = None
    resumes: int | None = None
    cut: int | None = None
    seed: int = 0
    mail: Literal["park", "stop"] = "park"
    loss: Literal["", "frozen", "cut"] = ""
    lost: bool = False
    event: Callable[["ScenarioRun"], object] | None = None
    passed: list[list[str]] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    deaths: list[tuple[str, ...]] = field(default_factory=list)
    how: str = ""
    error: Exception | None = None
    state: replay.State = replay.NEW
    _task: asyncio.Task[Any] | None = None
    _lives: int = 0
    _beside: list[threading.Thread] = field(default_factory=list)
    _disk: eventlog.Disk | None = None

    def __post_init__(self) -> None:
        if self.loss:
            self.environment.leases = Leases(RUNS, self.environment.time)

    def play(self, kills: Sequence[int] = (), *, every: int | None = None, happens: Sequence[int] = ()) -> Self:
        """Run processes until the run ends.

        Args:
            kills: The point at which each process dies.
            every: The point at which every later one dies; None for nowhere.
            happens: The point of each process at which `event` happens.
        """
        number, time, leases = 0, self.environment.time, self.environment.leases
        for _ in range(_MOST_LIVES):
            dies = kills[number] if number < len(kills) else every
            self._run_life(number, dies, happens[number] if number < len(happens) else None)
            if self.how == "dead" and number == 0 and self.cut is not None:
                self.environment.machine = Machine(images(self.environment.machine, self.seed)[self.cut])
            if self.how == "dead":
                self._note_death()
                time.wait(max(time.now + REBOOT, leases.expire() if leases is not None else 0.0))
                number += 1
            elif self.how == "paused":
                number += self._answer()
            else:
                break
        while any(process.is_alive() for process in self._beside):
            time.wait(math.inf)
        self._let_late_effects_happen()
        return self

    def dead_at(self, kill: int) -> Machine:
        """The machine after the first process died at a point."""
        self._run_life(0, kill)
        while self.how == "paused":
            self._answer()
            self._run_life(0, kill)
        return self.environment.machine

    def cancel(self) -> None:
        """Cancel the task that the run's process runs in now."""
        assert self._task is not None
        self._task.cancel()

    def say(self) -> None:
        """Have a person park or stop the run from another process, if there is one that goes on."""
        with contextlib.suppress(eventlog.NoSuchRun, eventlog.NotARunsDirectory, runner.RunError):
            receipt = (runner.park if self.mail == "park" else runner.stop)(RUN, "mae", runs=self.environment.others())
            if not receipt.written:  # otherwise nobody held the run, and whoever resumes it now carries it on
                self.said.append(receipt.state.seq)

    def lose(self) -> None:
        """Have the run's process lose its leases: from here on it is cut off, or frozen until another has taken over.

        Between the last check and an effect no process can notice that it was frozen, so in a tool none is.
        """
        time, leases, disk = self.environment.time, self.environment.leases, self._disk
        assert isinstance(disk, LeasedDisk)
        assert leases is not None  # there are some where they can be lost
        if self.loss == "frozen" and self.passed[-1][-1].startswith("tool"):
            return
        self.lost = True
        ends = leases.expire()
        time.wake(threading.main_thread(), ends)
        if self.loss == "cut":
            disk.is_cut = True
        else:
            time.wait(ends + FROZEN)

    def _run_life(self, number: int, kill: int | None, happens: int | None = None) -> None:
        points = CrashPoints(kill, happens, lambda: self.event and self.event(self))
        if number == len(self.passed):
            self.passed.append([])
        points.passed = self.passed[number]
        environment = self.environment
        environment.time.lingers = _LINGER if self.fault is not None and self.fault.behaviors == ("thread",) else 0.0
        process = RoutedDisk(Process(environment.machine, _FIRST_PID + self._lives), environment.folder, points)
        self._disk = LeasedDisk(process, environment.leases) if environment.leases is not None else process
        self._lives += 1
        live = functools.partial(self._live, points, process, CrashPointDisk(self._disk, points))
        if not self.loss or happens is None:
            self.how, self.state, self.error = live()
            return
        came: list[Came] = []
        self.lost = False
        self._beside.append(environment.time.beside(lambda: came.append(live())))
        environment.time.wait(math.inf)
        self.how, self.state, self.error = ("dead", self.state, None) if self.lost else came[0]

    def _live(self, points: CrashPoints, process: RoutedDisk, disk: CrashPointDisk) -> Came:
        """One process from its start to its end, and what it came to."""
        how, state, problem = "", self.state, None
        try:
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.environment.time)) as loop:
                outcome = loop.run(self._go(points, eventlog.Directory(RUNS, disk=disk)))
            how, state = "paused" if isinstance(outcome, runner.Paused) else "finished", outcome.state
        except Killed:
            pass
        except (asyncio.CancelledError, runner.errors.Parked):
            how = "dead"
        except Exception as error:  # noqa: BLE001 (an error of the process is the end of the scenario)
            how, problem = f"{type(error).__name__}: {error}", error
        process.die()
        return "dead" if points.dead else how, state, problem

    async def _go(self, points: CrashPoints, runs: eventlog.Directory) -> runner.Outcome:
        environment = self.environment
        self._task = asyncio.current_task()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # a dead process reports nothing
        threads = Threads(environment.time)
        for late in environment.late:
            schedule(late)
        agent = Instruments(environment, points, threads, self.fault, self.without, self.reword).agent()
        if self.resumes is not None:
            agent = agent.replace(limits=msgspec.structs.replace(agent.limits, resumes=self.resumes))
        person = Person(environment, points, self.answer_mode if not environment.left else "truth")
        clock = VirtualClock(environment.time)
        try:
            if RUN in runs.runs():
                return await runner.resume(RUN, agent, runs=runs, on_question=person.answer, clock=clock)
            where = environment.folder / "workspace"
            return await runner.start(
                agent,
                environment.inputs.task,
                inputs=environment.inputs.inputs,
                runs=runs,
                run=RUN,
                workspace=where,
                on_question=person.answer,
                clock=clock,
            )
        finally:
            threads.end()

    def _note_death(self) -> None:
        marked, history = dict[str, bool](), list[replay.AnyEvent]()
        try:
            found = family(self.environment.machine)
            self.environment.saved = {path: _turns(events) for path, events in found.values()}
            history = events_of(found)
        except (eventlog.LogError, replay.ReplayError) as error:
            self.environment.problems.append(f"after a death the log can't be read: {error}")
        for event in history:
            match event:
                case AttemptMarked() if event.effect != "reads":
                    marked[event.call] = True
                case ResultRecorded():
                    marked[event.call] = False
        self.deaths.append(tuple(call for call, in_doubt in marked.items() if in_doubt))

    def _answer(self) -> bool:
        """Settle what the paused run waits for, from outside the run; otherwise let its approvals lapse.

        Returns whether anything was settled.
        """
        environment = self.environment
        person = Person(environment, CrashPoints(), "truth")
        open_ = [question for question in self.state.waiting if question.kind == "settle"]
        for question in open_:
            answer = person.settles(question)
            assert answer.verdict in ("rerun", "done")  # so that it fits `settle`
            runner.settle(RUN, question.id, answer.who, answer.verdict, answer.text, runs=environment.others())
        if not open_ and self.state.due is not None:
            ahead = (self.state.due - VirtualClock(environment.time).wall()).total_seconds()
            environment.time.now += max(0.0, ahead)
        environment.left = environment.left or bool(open_)
        return bool(open_)

    def _let_late_effects_happen(self) -> None:

        async def wait() -> None:
            for late in self.environment.late:
                schedule(late)
            await self.environment.landed()

        if any(not late.landed for late in self.environment.late):
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.environment.time)) as loop:
                loop.run(wait())


def _turns(history: Sequence[replay.AnyEvent]) -> int:
    turns, purpose = 0, "turn"
    for event in history:
        if isinstance(event, ModelAsked):
            purpose = event.purpose
        turns += isinstance(event, ReplySaved) and purpose == "turn"
    return turns
