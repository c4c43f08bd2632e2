"""Lives: one scenario from its beginning to its end. Crash, resume, finish, and look at what is there.

A scenario is its trouble, what the person does, and for each life the point where it ends. What comes after its last
death is undisturbed, so that whatever is wrong then was wrong before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self

import msgspec

import eventlog
import replay
import runner
from runner.crashtest._cast import Again, Cast, awaited
from runner.crashtest._counted import Counted, Routed
from runner.crashtest._cuts import cuts
from runner.crashtest._faults import Killed
from runner.crashtest._image import Image
from runner.crashtest._machine import Machine
from runner.crashtest._person import Manner, Person
from runner.crashtest._points import Points
from runner.crashtest._process import Process
from runner.crashtest._stage import RUN, RUNS, Stage
from runner.crashtest._threads import Threads
from runner.crashtest._troubles import Trouble
from runner.crashtest._virtual import VirtualClock, VirtualLoop

REBOOT: Final = 1.0
"""Virtual seconds between a death and the next life."""
_LIVES: Final = 24
_LINGER: Final = 0.02
_FIRST_PID: Final = 1000
IMAGES: Final = 8
"""Images of one power cut at most."""


@dataclass(frozen=True)
class Death:
    """How a life ended: the calls that were open on the disk then, and the questions put so far."""

    point: str
    open: tuple[str, ...]


@dataclass
class Lives:
    """One scenario, played. `passed` are the points of each life; `how` it ended: finished, paused, or why not."""

    stage: Stage
    task: str
    trouble: Trouble | None = None
    without: Collection[Literal["keys", "lookups"]] = ()
    manner: Manner = "truth"
    again: Again | None = None
    resumes: int | None = None
    passed: list[list[str]] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    how: str = ""
    error: Exception | None = None
    state: replay.State = replay.NEW

    def play(self, kills: Sequence[int] = (), *, every: int | None = None, cut: tuple[int, int] | None = None) -> Self:
        """Live until the run ends. `kills`: the point at which each life dies; `every`: where all later ones do.

        `cut`: the first death takes the power with it; the image that many in, of those drawn with that seed.
        """
        for number in range(_LIVES):
            self._live(number, kills[number] if number < len(kills) else every)
            if self.how == "dead" and number == 0 and cut is not None:
                self.stage.machine = Machine(images(self.stage.machine, cut[1])[cut[0]])
            if self.how == "dead":
                self._note_death()
                self.stage.time.now += REBOOT
            elif self.how == "paused":
                self._answer()
            else:
                break
        self._let_land()
        return self

    def dead_at(self, kill: int) -> Machine:
        """The machine after one life that died at a point, before anything else happens to it."""
        self._live(0, kill)
        return self.stage.machine

    def _live(self, number: int, kill: int | None) -> None:
        points = Points(kill)
        disk = Routed(Process(self.stage.machine, _FIRST_PID + number), self.stage.folder, points)
        self.stage.time.lingers = _LINGER if self.trouble is not None and self.trouble.does == ("thread",) else 0.0
        try:
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.stage.time)) as loop:
                outcome = loop.run(self._go(points, Counted(disk, points)))
            self.how, self.state = "paused" if isinstance(outcome, runner.Paused) else "finished", outcome.state
        except Killed:
            pass
        except Exception as error:  # noqa: BLE001 (whatever a life ends with is how the scenario ended)
            self.how, self.error = f"{type(error).__name__}: {error}", error
        if points.dead:
            self.how = "dead"
        disk.die()
        self.passed.append(points.passed)

    async def _go(self, points: Points, disk: Counted) -> runner.Finished | runner.Paused:
        stage = self.stage
        threads = Threads(stage.time)
        for late in stage.late:
            awaited(late)
        agent = Cast(stage, points, threads, self.trouble, self.without, self.again).agent()
        if self.resumes is not None:
            agent = agent.replace(limits=msgspec.structs.replace(agent.limits, resumes=self.resumes))
        person = Person(stage, points, self.manner if not stage.left else "truth")
        clock = VirtualClock(stage.time)
        try:
            if exists(stage.machine):
                return await runner.resume(RUN, agent, runs=RUNS, on_question=person.answer, clock=clock, disk=disk)
            where = stage.folder / "workspace"
            return await runner.start(
                agent, self.task, runs=RUNS, run=RUN, workspace=where, on_question=person.answer, clock=clock, disk=disk
            )
        finally:
            threads.end()

    def _note_death(self) -> None:
        """What the disk holds at a death, read as by a stranger."""
        turns, purpose, marked = 0, "turn", dict[str, bool]()
        try:
            history = events(self.stage.machine)
        except (eventlog.LogError, replay.ReplayError) as error:
            self.stage.problems.append(f"after a death the log can't be read: {error}")
            history = []
        for event in history:
            match event:
                case replay.ModelAsked():
                    purpose = event.purpose
                case replay.ReplySaved():
                    turns += purpose == "turn"
                case replay.AttemptMarked() if event.effect != "reads":
                    marked[event.call] = True
                case replay.ResultRecorded():
                    marked[event.call] = False
        self.stage.saved = turns
        self.deaths.append(Death(self.passed[-1][-1], tuple(call for call, is_open in marked.items() if is_open)))

    def _answer(self) -> None:
        """Somebody comes by and answers what the run waits for, from outside of it."""
        self.stage.left = True
        person = Person(self.stage, Points(), "truth")
        disk = Process(self.stage.machine, _FIRST_PID - 1)
        for question in self.state.waiting:
            answer = person.says(question)
            if answer.verdict == "approve":
                runner.approve(RUN, question.id, answer.who, runs=RUNS, disk=disk)
            else:
                assert answer.verdict != "refuse"  # nobody here refuses
                runner.settle(RUN, question.id, answer.who, answer.verdict, answer.text, runs=RUNS, disk=disk)

    def _let_land(self) -> None:
        """What is still on its way lands, when everything is over."""

        async def wait() -> None:
            for late in self.stage.late:
                awaited(late)
            await self.stage.landed()

        if any(not late.landed for late in self.stage.late):
            with asyncio.Runner(loop_factory=lambda: VirtualLoop(self.stage.time)) as loop:
                loop.run(wait())


def events(machine: Machine) -> list[replay.AnyEvent]:
    """Every event on a machine's disk, in order; none when there is no run yet."""
    if not exists(machine):
        return []
    lines = eventlog.read(RUNS, RUN, disk=Process(machine)).lines
    return [replay.decode(raw, seq=line.seq) for line in lines for raw in line.events]


def exists(machine: Machine) -> bool:
    """Whether there is a run on a machine's disk."""
    try:
        return eventlog.began(RUNS, RUN, disk=Process(machine)) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def images(machine: Machine, seed: int) -> list[Image]:
    """What a power cut may leave of a machine's disk now: at most `IMAGES` of what may be, no two alike."""
    last = len(machine.trace)
    return [cut.image for cut in cuts(machine.trace, "posix", start=machine.image, first=last, limit=IMAGES, seed=seed)]
