"""The triage job: a task, a directory of runs, a world, and the agent that works there.

It is an application of `runner` like any other: it declares tools, starts a run or resumes the newest one of its
task. Everything that must survive is in the log, the workspace and the tracker. The command line adds words and exit
statuses, nothing else.
"""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import eventlog
import replay
import runner
import runner.testing
from runner.triage import _code_tools, _issue_tools
from runner.triage._checks import Outcome, check
from runner.triage._evidence import Evidence
from runner.triage._task import Task, names
from runner.triage._world import World
from runner.triage.errors import NoSuchTool, WrongWorld

LIMITS = runner.Limits(turns=120, dollars=20.0)
"""What a run of the job may use unless the command says otherwise: the batch, and as much again for lost asks."""


@dataclass(frozen=True)
class Job:
    """One task in one world. Use `Job.of`.

    `approve`: `ask` a person before an issue is filed, or `off`. `die_before`, `die_after`: the tool at whose first
    call this process kills itself, before its body or after it returned; None for neither.
    """

    task: Task
    runs: Path
    world: World
    approve: Literal["ask", "off"] = "ask"
    die_before: str | None = None
    die_after: str | None = None
    limits: runner.Limits = LIMITS

    @classmethod
    def of(cls, task: str, runs: str | Path, world: str | Path | None = None, **options: Any) -> Self:
        """The job for a task's name; `world` is `<runs>.world/<task>` by default, beside the runs and not among them.

        `options` are the fields from `approve` on. Raises `NoSuchTask`.
        """
        place = Path(world) if world is not None else Path(f"{Path(runs).resolve()}.world", task)
        return cls(Task(task), Path(runs), World(place.absolute()), **options)

    def agent(self, model: runner.Model | None = None, connect: _issue_tools.Connect | None = None) -> runner.Agent:
        """The agent, playing the task's recording unless another `model` is given. Its name begins the ids of its runs.

        `connect` reaches another tracker than the world's own. Raises `NoSuchTool` when it is to die at a tool that it
        does not have.
        """
        every = (*_code_tools.tools(self.task), *_issue_tools.tools(self.world.path, connect))
        tools = {name: tool for name in self.task.tools for tool in every if tool.name == name}
        for name, hook in ((self.die_before, "before"), (self.die_after, "after")):
            if name is not None:
                if name not in tools:
                    raise NoSuchTool(name, tuple(tools))
                tools[name] = tools[name].around(runner.testing.between(**{hook: _die}))
        return runner.Agent(
            model=model if model is not None else runner.testing.RecordedModel(self.task.recording),
            tools=tuple(tools.values()),
            instructions=self.task.instructions,
            name=self.task.name,
            context=self.task.context,
            limits=self.limits,
            approve=self.approve,
        )

    def newest(self) -> str | None:
        """The newest run of this task, whatever its phase, or None; a fork is newer than what it was forked from.

        Raises `eventlog.NotARunsDirectory`.
        """
        ours = re.compile(re.escape(self.task.name) + r"-\d{8}-[0-9a-z]{8}")
        found = [run for run in eventlog.store(self.runs).runs() if ours.fullmatch(run)]
        headers = [header for run in found if (header := eventlog.store(self.runs).header(run)) is not None]
        over = {header.parent.run for header in headers if header.parent is not None and header.salvaged is None}
        return next((run for run in found if run not in over), None)

    async def run(self, *, new: bool = False, model: runner.Model | None = None, **options: Any) -> runner.Outcome:
        """Carry on the newest run of the task, or start one if there is none, or in any case if `new`.

        A new run needs a world where nobody has worked. With `new` the present one is set aside under another name if
        need be, without it that is a `WrongWorld`. `options` are those of `runner.resume` (`accept_workspace`,
        `on_question`, `watch`, `clock`, `grace`).

        Raises at once `WorldHeld` when another process works in this world; `WrongWorld`; and what `runner.start` and
        `runner.resume` raise.
        """
        agent = self.agent(model)
        if new:
            self.world.renew(self.task)
        with self.world.held():
            if not new and (run := self.newest()) is not None:
                self._same_world(run)
                return await runner.resume(run, agent, runs=self.runs, **options)
            self.world.lay(self.task)
            options.pop("accept_workspace", None)  # nothing can have changed yet
            return await runner.start(agent, self.task.name, runs=self.runs, workspace=self.world.workspace, **options)

    def _same_world(self, run: str) -> None:
        """Refuse to carry on a run in a world it does not work in: its files would be here and its issues there."""
        workspace = replay.load(eventlog.store(self.runs).read(run).lines).workspace
        if workspace != str(self.world.workspace.resolve()):
            raise WrongWorld(str(self.world.path), f"run {run} works in {workspace}")

    def check(self, run: str, *only: str) -> list[Outcome]:
        """Make the task's checks, all or those named, for `run`. Never raises."""
        return check(Evidence(self.task, self.world, self.runs, run), only)


def _die() -> None:
    """SIGKILL to this process: no handler, no cleanup, as by a power switch."""
    os.kill(os.getpid(), signal.SIGKILL)


def agent_of(state: replay.State) -> runner.Agent | None:
    """The agent of a run of any task, in the world where the run works; None for a run of something else."""
    if state.agent not in names():
        return None
    world = Path(state.workspace).parent if state.workspace is not None else None
    return Job.of(state.agent, Path(), world, approve=state.approve).agent()
