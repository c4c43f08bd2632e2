"""One life in a process of its own that ends itself by SIGKILL at a chosen point: nothing in it is simulated but time.

The log and the workspace are on the real disk with real syncs, tools run in their own threads, locks are the kernel's.
Waits pass at once, and how much of them passed is kept beside the world, so that no life finds its clock set back. What
must outlive SIGKILL is a file: which calls began to act and what had happened by then, which replies came, what was
asked. From these the person of the next life tells the truth.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

import eventlog
import runner
from runner.crashtest._counted import Counted
from runner.crashtest._passing import Passing
from runner.crashtest._points import Points
from runner.crashtest._subject import Subject

RUN = "killed"


class Lethal(Points):
    """The points of a real process. Reaching the chosen one is SIGKILL, whichever thread comes there."""

    def __init__(self, dies: int | None, notes: Notes) -> None:
        """Begin a life that dies at a point, or at none."""
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


class Notes:
    """What outlives a life, in a folder beside the world: one file for each kind of fact, a line for each fact."""

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


class Skipping(runner.Clock):
    """The real clocks, ahead by all that was ever waited for in this scenario; a wait passes at once."""

    def __init__(self, notes: Notes) -> None:
        """Go on from where earlier lives were."""
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


class Life:
    """One life in `folder`, which dies at the point numbered `dies`, or at none."""

    def __init__(self, subject: Subject, folder: Path, dies: int | None) -> None:
        """Begin it in this process."""
        self._subject, self._folder = subject, folder
        self.notes = Notes(folder / "notes")
        self.points = Lethal(dies, self.notes)
        self._world = subject.world(folder / "world")

    def live(self) -> None:
        """Start the run or carry it on, and note the points that were passed."""
        agent = self._subject.agent(self._world)
        agent = agent.replace(model=_Speaking(self, agent.model), tools=[self._tool(tool) for tool in agent.tools])
        runs = self._folder / "runs"
        options: dict[str, Any] = {
            "runs": runs,
            "clock": Skipping(self.notes),
            "disk": Counted(Passing(eventlog.DISK), self.points),
            "on_question": self._answer,
        }
        if runs.exists() and RUN in eventlog.runs(runs):
            asyncio.run(runner.resume(RUN, agent, **options))
        else:
            workspace = self._folder / "world" / "workspace"
            workspace.mkdir(exist_ok=True)
            asyncio.run(runner.start(agent, self._subject.task, run=RUN, workspace=workspace, **options))
        self.notes.write("points", self.points.passed)

    def _tool(self, tool: runner.Tool) -> runner.Tool:
        played = tool.around(lambda body: self._between(body, f"tool {tool.name}", acts=tool.effect != "reads"))
        if tool.find is not None:
            played.find = self._between(tool.find, f"lookup {tool.name}", acts=False)
        return played

    def _between(self, body: Callable[..., Any], what: str, *, acts: bool) -> Callable[..., Any]:
        """`body` between two points, as async as it is."""

        def before() -> str:
            call = runner.current_call()
            name = f"{what} {call.id}"
            self.points.at(f"{name}, before")
            if acts:
                self.notes.write("began", [call.id, self._subject.happened(self._world)])
            return name

        @functools.wraps(body)
        async def awaited(*arguments: Any, **given: Any) -> Any:
            name = before()
            value = await body(*arguments, **given)
            self.points.at(f"{name}, after")
            return value

        @functools.wraps(body)
        def called(*arguments: Any, **given: Any) -> Any:
            name = before()
            value = body(*arguments, **given)
            self.points.at(f"{name}, after")
            return value

        return awaited if inspect.iscoroutinefunction(body) else called

    def _answer(self, question: runner.Question) -> runner.Answer:
        """A person looks at the world before they speak: whether anything happened since the call began to act."""
        self.points.at(f"question {question.id}, before")
        if question.kind == "approve":
            return runner.Answer("approve", "a person")
        self.notes.write("asked", question.id)
        began = next(then for call, then in self.notes.read("began") if call == question.call)
        happened = began != self._subject.happened(self._world)
        return runner.Answer("done" if happened else "rerun", "a person", "it is done" if happened else "")


class _Speaking:
    """The user's model, with a point before and after each ask."""

    def __init__(self, life: Life, model: runner.Model) -> None:
        self.name = model.name
        self._life, self._model = life, model

    def bound(self, request: runner.Request) -> runner.Bound:
        return self._model.bound(request)

    async def ask(self, request: runner.Request) -> runner.Reply:
        what = f"model {request.purpose} {request.turn}"
        self._life.points.at(f"{what}, before")
        reply = await self._model.ask(request)
        self._life.notes.write("heard", [request.purpose, request.turn])
        self._life.points.at(f"{what}, after")
        return reply


def paid_twice(notes: Notes) -> int:
    """How many replies came that had come before."""
    heard = Counter((purpose, turn) for purpose, turn in notes.read("heard"))
    return sum(heard.values()) - len(heard)
