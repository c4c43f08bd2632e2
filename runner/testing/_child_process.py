"""One process of a killed run: it ends itself by SIGKILL at a chosen point. Only time is simulated in it.

The log and the workspace are on the real disk with real syncs, tools run in their own threads, locks are the kernel's.
Waits pass at once. How much time they skipped is kept in a file, so that the next process does not find its clock set
back. Other facts that must survive SIGKILL are files too: which calls began to act and what had happened by then, which
replies came, what was asked. The person who answers in the next process reads them.
"""

import asyncio
import functools
import os
import signal
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

import eventlog
import runner
from eventlog.simdisk import DiskProxy
from runner.testing._around import AskedThrough, between
from runner.testing._crash_point_disk import CrashPointDisk
from runner.testing._environment import Inputs
from runner.testing._points import CrashPoints

RUN = "killed"


class Notes:
    """Facts that survive SIGKILL: one file for each kind of fact, one line for each fact."""

    def __init__(self, folder: Path) -> None:
        """Keep them in `folder`."""
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def write(self, kind: str, fact: object) -> None:
        """Add a fact. SIGKILL takes nothing from it once this returns."""
        with (self._folder / kind).open("ab") as file:
            file.write(msgspec.json.encode(fact) + b"\n")

    def read(self, kind: str) -> list[Any]:
        """All facts of a kind, in their order."""
        path = self._folder / kind
        return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def paid_twice(self) -> int:
        """How many replies came again after they had come before."""
        replies = [tuple(reply) for reply in self.read("replies")]
        return len(replies) - len(set(replies))


class KillPoints(CrashPoints):
    """The points of a real process. Reaching the chosen one is SIGKILL, whichever thread comes there."""

    def __init__(self, dies: int | None, notes: Notes) -> None:
        """Kill this process at the point numbered `dies`, or never."""
        super().__init__(dies)
        self._notes = notes
        self._one = threading.Lock()

    def at(self, name: str) -> None:
        """Pass a point, or die there."""
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
        """The time of day."""
        return super().wall() + timedelta(seconds=self._ahead)

    def monotonic(self) -> float:
        """The seconds."""
        return super().monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        """Let them have passed."""
        self._notes.write("waited", seconds)
        self._ahead += seconds
        await asyncio.sleep(0)


class ChildRun:
    """One process of the run in `folder`, which is killed at the point numbered `dies`, or never."""

    def __init__(self, inputs: Inputs, folder: Path, dies: int | None) -> None:
        """Make or open the environment."""
        self._inputs, self._folder = inputs, folder
        self.notes = Notes(folder / "notes")
        self.points = KillPoints(dies, self.notes)
        self._outside = inputs.environment(folder / "environment")
        self._paths = {RUN: ""}

    def run(self) -> None:
        """Start or resume the run, and note the points that were passed."""
        agent = self._around(self._inputs.agent(self._outside))
        runs = self._folder / "runs"
        options: dict[str, Any] = {
            "runs": eventlog.Directory(runs, disk=CrashPointDisk(DiskProxy(eventlog.DISK), self.points)),
            "clock": SkippingClock(self.notes),
            "on_question": self._answer,
        }
        if runs.exists() and RUN in eventlog.store(runs).runs():
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

    def _around(self, agent: runner.Agent[Any, Any, Any]) -> runner.Agent[Any, Any, Any]:
        """An agent with points around its model, its tools, and the agents among these."""
        model = AskedThrough(agent.model, functools.partial(self._ask, agent.model))
        return agent.replace(model=model, tools=[self._tool(tool) for tool in agent.tools])

    def _name(self, run: str, id: object) -> str:  # noqa: A002 (of a call, or of a turn)
        """What a call or a turn is called in the whole family: a child's by the path to it."""
        if run not in self._paths:
            parent = runner.read_state(run, self._folder / "runs").parent_call
            assert parent is not None  # of every run in the folder but the first
            self._paths[run] = f"{self._name(parent.run, parent.call)}:"
        return f"{self._paths[run]}{id}"

    def _tool(self, tool: runner.Tool) -> runner.Tool:
        """A tool, and its lookup, each between two points."""
        if (inner := getattr(tool, "agent", None)) is not None:
            child: Any = tool.around(lambda body: body)
            child.agent = self._around(inner)
            return child  # type: ignore[no-any-return] # a copy of the tool
        instrumented = tool.around(self._between(f"tool {tool.name}", acts=tool.effect != "reads"))
        if tool.find is not None:
            instrumented.find = self._between(f"lookup {tool.name}", acts=False)(tool.find)
        return instrumented

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
        """A reply of the model, between two points."""
        turn = self._name(request.run, request.turn)
        what = f"model {request.purpose} {turn}"
        self.points.at(f"{what}, before")
        reply = await model.ask(request)
        self.notes.write("replies", [request.purpose, turn])
        self.points.at(f"{what}, after")
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
