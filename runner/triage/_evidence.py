"""What the checks look at: the workspace, the tracker's file, and the run's log. Nothing here writes.

Each piece is looked up when a check first asks for it. A piece that can't be had raises, and the check that asked
fails with that reason: a world that is gone must not look like a world in order.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import eventlog
import replay
from replay.events import AttemptMarked, ReplySaved
from replay.messages import ToolCall
from runner.triage import _suite
from runner.triage._task import Crash, Fix, Task, contents
from runner.triage._tracker_store import Comment, Issue, stored
from runner.triage._world import World

_SECONDS = 30.0


class Failed(Exception):
    """Something is not as a check wants it, or is not there at all; the text says what."""


def require(holds: object, why: str) -> None:
    """Raise `Failed`, which says `why`, unless it holds."""
    if not holds:
        raise Failed(why)


@dataclass(frozen=True)
class Evidence:
    """What is there after `run` of `task` in `world`, its log being in `runs`."""

    task: Task
    world: World
    runs: Path
    run: str

    @cached_property
    def issues(self) -> list[Issue]:
        return stored(self.world.tracker, Issue)

    @cached_property
    def comments(self) -> list[Comment]:
        return stored(self.world.tracker, Comment)

    def issue(self, cause: str) -> Issue:
        """The one issue of a cause. Raises `Failed` when there is none or more than one."""
        found = [issue for issue in self.issues if issue.cause == cause]
        require(len(found) == 1, f"the tracker holds {len(found)} issues for {cause}")
        return found[0]

    def crash(self, number: str) -> Crash:
        return next(crash for crash in self.task.crashes() if crash.id == number)

    @cached_property
    def after(self) -> dict[str, bytes]:
        """The workspace's files now."""
        return contents(self.world.workspace)

    def text(self, path: str) -> str:
        """A file of the workspace. Raises `Failed`."""
        require(path in self.after, f"{path} is not in the workspace")
        return self.after[path].decode()

    @cached_property
    def suite(self) -> _suite.Suite:
        """What the workspace's tests say, with a line for each of them."""
        return _suite.run(self.world.workspace, seconds=_SECONDS, each=True)

    def tests(self, path: str) -> dict[str, str]:
        """The tests of one file, each with the word that pytest says of it."""
        found = re.findall(rf"^([A-Z]+) ({re.escape(path)}::\S+)", self.suite.output, re.MULTILINE)
        return {name: word for word, name in found}

    def suite_without(self, fix: Fix) -> _suite.Suite:
        """What a fix's test says in a copy of the workspace without that fix's patch."""
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch).resolve() / "workspace"
            shutil.copytree(self.world.workspace, copy)
            text = self.text(fix.patch.path).replace(fix.patch.new, fix.patch.old)
            (copy / fix.patch.path).write_text(text, encoding="utf-8")
            return _suite.run(copy, fix.test, seconds=_SECONDS)

    def application(self, typed: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        """What the application in the workspace prints when somebody types this."""
        with tempfile.TemporaryDirectory() as scratch:
            return subprocess.run(  # noqa: S603 (our interpreter, the workspace's own application)
                [sys.executable, "-m", "todo", str(Path(scratch, "list.json"))],
                input="".join(f"{line}\n" for line in typed),
                cwd=self.world.workspace,
                env=_suite.environment(),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )

    @cached_property
    def lines(self) -> list[eventlog.Line]:
        """The run's log. Raises what `eventlog.Store.read` raises."""
        return eventlog.store(self.runs).read(self.run).lines

    @cached_property
    def events(self) -> list[replay.AnyEvent]:
        return [replay.decode(raw, seq=line.seq) for line in self.lines for raw in line.events]

    @cached_property
    def state(self) -> replay.State:
        """What the log adds up to."""
        return replay.load(self.lines)

    @cached_property
    def calls(self) -> dict[str, ToolCall]:
        """Every call of every saved reply, by its id."""
        replies = [event.reply for event in self.events if isinstance(event, ReplySaved)]
        return {call.id: call for reply in replies for call in reply.calls}

    def called(self, tool: str) -> list[str]:
        """The ids of a tool's calls, in their order."""
        return [i for i, call in self.calls.items() if call.tool == tool]

    def keys(self, tool: str) -> set[str]:
        """The keys under which a tool's calls were tried."""
        calls = self.called(tool)
        return {event.key for event in self.events if isinstance(event, AttemptMarked) and event.call in calls}


class Check(NamedTuple):
    """One check. It `looks` at what is outside the log alone, or at the log too.

    `why` takes the evidence, and raises why the check fails. `each`: it takes a crash group too, and is made for each
    of that kind.
    """

    name: str
    looks: Literal["outside", "log"]
    why: Callable[..., None]
    each: Literal["", "fixes", "same", "unseen"]

    @property
    def sentence(self) -> str:
        """What holds when it is ok."""
        return (self.why.__doc__ or "").strip()


CHECKS: dict[str, Check] = {}
"""Every check there is, by its name."""
_Why = TypeVar("_Why", bound=Callable[..., None])


def check(
    looks: Literal["outside", "log"], *, each: Literal["", "fixes", "same", "unseen"] = ""
) -> Callable[[_Why], _Why]:
    """Make a function the check of its name; its docstring is what holds."""

    def made(why: _Why) -> _Why:
        name = why.__name__.replace("_", "-")
        CHECKS[name] = Check(name, looks, why, each)
        return why

    return made
