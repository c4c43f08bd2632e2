"""A history told in memory, line by line, and then written by the log itself on a disk without chance.

The runner's loop without its world: outcomes are said, decisions are `decide`'s. Every id, time and nonce is fixed, so
the same script makes the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

import eventlog
from replay import Event
from replay.events import QuestionAnswered, RunStarted, RunStopped
from replay.messages import Reply, ToolCall, Usage
from replay.values import ParentCall
from tests.golden.v1 import agents
from tests.support.disks import Quick
from tests.support.story import Line, Story


class Fixed(Quick):
    """The disk of a machine that is the same everywhere; nothing is synced, since nothing dies."""

    def __init__(self) -> None:
        self._drawn = 0

    def random(self, size: int) -> str:
        """The next of one sequence: a fork's nonce is not its parent's."""
        self._drawn += 1
        return hashlib.sha256(b"%d" % self._drawn).hexdigest()[: 2 * size]

    def real(self, path: Path) -> str:  # noqa: ARG002 (the verb's signature)
        """The same place."""
        return "/runs"

    def mounts(self) -> str:
        """One file system that keeps what was synced."""
        return "1 1 0:1 / / rw - ext4 /dev/disk rw\n"


class Telling(Story):
    """One history. `name` is its run, `agents` are the names of its agents, life by life."""

    def __init__(self, name: str, agent: str = "shop") -> None:
        self.name = name
        self.agents = [agent]
        super().__init__(agents.agent(agent))

    def write(self, *events: Event) -> None:
        """One save."""
        super().write(*(self._named(e) if isinstance(e, RunStarted) else e for e in events))

    def _named(self, began: RunStarted) -> RunStarted:
        parent = ParentCall(run="children", uid="r", call="1.2") if self.name == "child" else None
        framework = "python" if self.name == "program" else ""
        return replace(began, run=self.name, parent_call=parent, framework=framework)

    def call(self, tool: str, cause: str = "a", **more: str) -> list[Event]:
        """The model calls one tool; what comes next."""
        return self.reply((tool, _arguments(cause=cause, **more)))

    def over(self, text: str = "It is done.") -> list[Event]:
        """The model's last reply."""
        return self.reply(whole=Reply(text=text, usage=Usage(input_tokens=100, output_tokens=20), dollars=0.25))

    def resume(self, agent: str | None = None, after: float = 5, *, back: bool = False) -> list[Event]:
        """Another life, with the same agent or another one; then what comes next."""
        self.agents.append(agent or self.agents[-1])
        self.die(after, agent=agents.agent(self.agents[-1]), clock_back=back)
        return self.go()

    def say(self, question: str, verdict: str, text: str = "") -> None:
        """A person answers from another process: a life of one line."""
        self.tick(60)
        self.life += 1
        self.agents.append(self.agents[-1])
        asked = self.state.questions[question]
        self.write(
            QuestionAnswered(id=question, answer=verdict, who="ann", digest=asked.digest, text=text)  # type: ignore[arg-type] # the caller's literal
        )

    def stop(self, reason: str = "StoppedByPerson", *, final: bool = True, detail: str = "by ann") -> None:
        """A stop that nobody decided but a person, a signal or the workspace."""
        self.write(RunStopped(reason=reason, final=final, detail=detail))


def calls(*wanted: tuple[str, str]) -> Reply:
    """A reply that calls tools with a cause each."""
    made = tuple(
        ToolCall(tool=t, arguments=_arguments(cause=c), provider_id=f"p{i}") for i, (t, c) in enumerate(wanted)
    )
    return Reply(calls=made, usage=Usage(input_tokens=100, output_tokens=20), dollars=0.25, stop="tool_calls")


def calls_of(agent: str, *tasks: str) -> Reply:
    """A reply that gives an agent some tasks."""
    made = tuple(
        ToolCall(tool=agent, arguments=_arguments(task=task), provider_id=f"p{i}") for i, task in enumerate(tasks)
    )
    return Reply(calls=made, usage=Usage(input_tokens=100, output_tokens=20), dollars=0.25, stop="tool_calls")


SUM = '{"cause": "b", "note": ""}'


def _arguments(**values: str) -> str:
    return "{" + ", ".join(f'"{name}": "{value}"' for name, value in values.items()) + "}"


def kept(telling: Telling, runs: Path, disk: Fixed) -> eventlog.Log:
    """The history as a log, left open: as its last life left it."""
    first, *rest = telling.lines
    log = eventlog.Directory(runs, disk=disk).create(telling.name, at=first.at, events=[bytes(e) for e in first.events])
    return written(rest, log, runs, disk)


def written(lines: Sequence[Line], log: eventlog.Log, runs: Path, disk: Fixed) -> eventlog.Log:
    """More lines behind those of a log, each life an opening of its own behind a death."""
    for line in lines:
        if line.life != log.life:
            log.abandon()
            log = eventlog.Directory(runs, disk=disk).open(log.run)
        assert log.life == line.life
        log.append(line.at, [bytes(event) for event in line.events])
    return log
