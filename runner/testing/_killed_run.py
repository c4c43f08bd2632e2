"""One run whose processes are killed, each a fork of this one that ends itself by SIGKILL at a chosen point.

Each calls the user's factories anew; only the folder is passed from one to the next. In a process only time is
simulated: the log and the workspace are on the real disk with real syncs, tools run in their own threads, locks are the
kernel's. Waits pass at once. How much time they skipped is kept in a file, so that the next process does not find its
clock set back. Other facts that must survive SIGKILL are files too: which calls began to act and what had happened by
then, which replies came, what was asked. The person who answers in the next process reads them.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import msgspec

import eventlog
import runner
from runner.testing._around import between, instrumented
from runner.testing._crash_point_disk import CrashPointDisk
from runner.testing._history import family
from runner.testing._inputs import Inputs
from runner.testing._points import CrashPoints
from runner.testing._verdict import Scenario, differences, of_a_finished_run, verified

RUN = "killed"
PATIENCE = 120.0
"""Seconds without a save after which a process counts as one that hangs."""


class Notes:
    """Facts that survive SIGKILL: one file for each kind of fact, one line for each fact."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def write(self, kind: str, fact: object) -> None:
        """Add a fact. SIGKILL takes nothing from it once this returns."""
        with (self._folder / kind).open("ab") as file:
            file.write(msgspec.json.encode(fact) + b"\n")

    def read(self, kind: str) -> list[Any]:
        path = self._folder / kind
        return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def paid_twice(self) -> int:
        """How many replies came again after they had come before."""
        replies = [tuple(reply) for reply in self.read("replies")]
        return len(replies) - len(set(replies))


class KillPoints(CrashPoints):
    """The points of a real process. Reaching the chosen one is SIGKILL, whichever thread comes there."""

    def __init__(self, dies: int | None, notes: Notes) -> None:
        super().__init__(dies)
        self._notes = notes
        self._one = threading.Lock()

    def at(self, name: str) -> None:
        with self._one:
            if self.dies_next:
                self._notes.write("died", name)
                os.kill(os.getpid(), signal.SIGKILL)
            super().at(name)


class SkippingClock(runner.Clock):
    """The real clocks plus all waits of this scenario so far; a wait passes at once."""

    def __init__(self, notes: Notes) -> None:
        """Go on from the time that earlier processes reached."""
        self._notes = notes
        self._ahead: float = sum(notes.read("waited"))

    def wall(self) -> datetime:
        return super().wall() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        self._notes.write("waited", seconds)
        self._ahead += seconds
        await asyncio.sleep(0)


class ChildRun:
    """One process of the run in `folder`, which is killed at the point numbered `dies`, or never."""

    def __init__(self, inputs: Inputs, folder: Path, dies: int | None) -> None:
        self._inputs, self._folder = inputs, folder
        self.notes = Notes(folder / "notes")
        self.points = KillPoints(dies, self.notes)
        self._outside = inputs.environment(folder / "environment")
        self._paths = dict[str, str]()

    def run(self) -> None:
        """Start or resume the run, and note the points that were passed."""
        agent = instrumented(self._inputs.made(self._outside), self._ask, self._tool)
        runs = self._folder / "runs"
        options: dict[str, Any] = {
            "runs": eventlog.Directory(runs, disk=CrashPointDisk(eventlog.DISK, self.points)),
            "clock": SkippingClock(self.notes),
            "on_question": self._answer,
        }
        if RUN in eventlog.store(runs).runs():
            asyncio.run(runner.resume(RUN, agent, **options))
        else:
            workspace = self._folder / "environment" / "workspace"
            workspace.mkdir(exist_ok=True)
            asyncio.run(
                runner.start(
                    agent, self._inputs.task, run=RUN, inputs=self._inputs.inputs, workspace=workspace, **options
                )
            )
        self.notes.write("points", self.points.passed)

    def _name(self, run: str, id: object) -> str:  # noqa: A002 (of a call, or of a turn)
        """What a call or a turn is called in the whole family: a child's by the path to it."""
        if run not in self._paths:
            found = family(eventlog.store(self._folder / "runs"), RUN)
            self._paths = {name: path for name, (path, _) in found.items()}
        return f"{self._paths[run]}{id}"

    def _tool(self, tool: runner.Tool) -> runner.Tool:
        """A tool, and its lookup, each between two points."""
        other = tool.around(self._between(f"tool {tool.name}", acts=tool.effect != "reads"))
        if tool.find is not None:
            other.find = self._between(f"lookup {tool.name}", acts=False)(tool.find)
        return other

    def _between(self, what: str, *, acts: bool) -> Callable[..., Any]:
        def name() -> str:
            call = runner.current_call()
            return self._name(call.run, call.id)

        def before() -> None:
            self.points.at(f"{what} {name()}, before")
            if acts:
                self.notes.write("began", [name(), self._inputs.counts(self._outside)])

        return between(before, lambda: self.points.at(f"{what} {name()}, after"))

    async def _ask(self, model: runner.Model, request: runner.Request) -> runner.Reply:
        turn = self._name(request.run, request.turn)
        with self.points.around(f"model {request.purpose} {turn}"):
            reply = await model.ask(request)
            self.notes.write("replies", [request.purpose, turn])
            return reply

    def _answer(self, question: runner.Question) -> runner.Answer:
        """Answer as a person does who checks whether anything happened since the call began to act."""
        self.points.at(f"question {question.id}, before")
        if question.kind == "approve":
            return runner.Answer("approve", "a person")
        self.notes.write("asked", question.id)
        now = self._inputs.counts(self._outside)
        began = next((then for call, then in self.notes.read("began") if call == question.call), now)
        happened = began != now
        return runner.Answer("done" if happened else "rerun", "a person", "it is done" if happened else "")


@dataclass(frozen=True)
class KilledRun:
    """One scenario, in a folder of its own. `after_death` is called with the environment after each death."""

    inputs: Inputs
    folder: Path
    after_death: Callable[[Any], None] | None

    def __post_init__(self) -> None:
        (self.folder / "environment").mkdir(parents=True, exist_ok=True)

    @property
    def notes(self) -> Notes:
        return Notes(self.folder / "notes")

    def outside(self) -> Any:
        return self.inputs.environment(self.folder / "environment")

    def output(self) -> str:
        """The end of what its processes printed."""
        said = self.folder / "said"
        return said.read_text(encoding="utf-8", errors="replace").strip()[-2_000:] if said.exists() else ""

    def clean_up(self) -> None:
        """Do what else a crash would do."""
        if self.after_death is not None:
            self.after_death(self.outside())

    def run(self, dies: int | None = None) -> Literal["finished", "killed", "failed"]:
        """Run one process to its end; it dies at the point numbered `dies`, or never."""
        how = self.ended(self.begin(dies))
        if how == "killed":
            self.clean_up()
        return how

    def begin(self, dies: int | None = None) -> BaseProcess:
        """Start one process. What it prints goes to a file in the folder."""
        process = multiprocessing.get_context("fork").Process(target=self._live, args=(dies,))
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads of this process are not in the fork
            process.start()
        return process

    def ended(self, process: BaseProcess) -> Literal["finished", "killed", "failed"]:
        """Wait until a process ends, and say how; one that does nothing for so long is ended, and has failed."""
        before = -1
        while process.is_alive() and self.written() != before:
            before = self.written()
            process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
            with (self.folder / "said").open("a", encoding="utf-8") as said:
                said.write(f"it wrote nothing to its log for {PATIENCE:g} s, and did not end\n")
            return "failed"
        ends: dict[int | None, Literal["finished", "killed"]] = {0: "finished", -signal.SIGKILL: "killed"}
        return ends.get(process.exitcode, "failed")

    def written(self) -> int:
        """A number that changes whenever the run's log is written to."""
        return sum(log.stat().st_mtime_ns for log in self.folder.glob("runs/*/seg-*.jsonl"))

    def _live(self, dies: int | None) -> None:
        sys.stdout = sys.stderr = (self.folder / "said").open("a", encoding="utf-8", buffering=1)
        for descriptor in (1, 2):
            os.dup2(sys.stdout.fileno(), descriptor)
        ChildRun(self.inputs, self.folder, dies).run()

    def judge(self, name: str, mode: str, how: str, wanted: Mapping[str, int], deaths: int) -> Scenario:
        """The verdict: the effects compared with an undisturbed run's, and the log checked."""
        finished = how == "finished"
        differ, duplicates, lost = differences(self.inputs.counts(self.outside()), wanted, finished=finished)
        points = [*self.notes.read("died"), "", ""]
        why = [] if finished else [f"the last process {how}: {self.output()}"]
        if duplicates or lost:
            why.append(differ)
        if finished:
            why += self._of_the_log(deaths)
        return Scenario(
            id=name,
            mode=mode,
            first=points[0],
            second=points[1],
            duplicates=duplicates,
            lost=lost,
            paid_twice=self.notes.paid_twice(),
            questions=tuple(dict.fromkeys(self.notes.read("asked"))),
            unfinished=not finished,
            why=tuple(why),
        )

    def _of_the_log(self, deaths: int) -> Iterable[str]:
        runs, workspace = eventlog.store(self.folder / "runs"), self.folder / "environment" / "workspace"
        spoilt, found = verified(runs, RUN)
        if spoilt:
            return [f"the log does not verify: {spoilt}"]
        return of_a_finished_run(runner.read_state(RUN, runs), found, workspace, self.notes.paid_twice(), deaths)
