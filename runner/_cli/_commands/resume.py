"""`refold resume`: carry one run on, or after a deploy every interrupted run of an agent, in one event loop.

A run is interrupted when its process died, or a signal parked it. A run that stopped for any other reason waits for
somebody to see to that reason. What can't be carried on is said and passed by, so that one bad run does not keep the
others waiting.
"""

import asyncio
import functools
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

import eventlog
import replay
import runner
from replay import State
from runner._cli import drive, load_agent, options
from runner._cli._io import ask, out
from runner._cli._io.errors import WORST_FIRST, Status, leave, say, status
from runner._cli._io.progress import Watch


class _All:
    """Carries on some runs, `jobs` at a time in one event loop; `had` is what they came to."""

    def __init__(self, go: drive.Go, command: str | None, jobs: int) -> None:
        self._go, self._command = go, command
        self.had = {Status.FINISHED}
        self.not_resumed: list[str] = []
        self.interrupted = False
        self._room = asyncio.Semaphore(jobs)

    async def carry_on(self, entries: Sequence[runner.RunInfo]) -> None:
        await asyncio.gather(*(self._one(entry) for entry in entries))

    async def _one(self, entry: runner.RunInfo) -> None:
        async with self._room:
            if self.interrupted:
                self.not_resumed.append(entry.run)
                self.had.add(Status.FAILED)
                return
            if entry.problem is not None:
                self._say(entry.problem)
                return
            watch = Watch(entry.run)
            hook = ask.Command(self._command, watch) if self._command is not None else None

            def saved(state: State, events: Sequence[replay.AnyEvent]) -> None:
                watch(state, events)
                self.interrupted |= runner.draining()  # somebody wants this process to end

            try:
                result = await self._go(entry.run, watch=saved, on_question=hook)
            except Exception as error:  # noqa: BLE001 (an agent's own errors too: said, and the others get their turn)
                self._say(error)
                out.out(f"{entry.run}  {'skipped' if isinstance(error, eventlog.RunLocked) else 'stopped or failed'}")
                return
        self.had.add(drive.status(result))
        if isinstance(result, runner.Finished):
            out.out(f"{entry.run}  done")
        elif isinstance(result, runner.Paused):
            out.out(f"{entry.run}  waits for a person: {', '.join(question.id for question in result.questions)}")

    def _say(self, error: Exception) -> None:
        """Say why one run failed; what would be a mistake of the command line is here a run that failed."""
        say(error)
        found = status(error)
        self.had.add(Status(found) if found in WORST_FIRST else Status.FAILED)


def resume_all(agent: load_agent.AnyAgent, runs: str, *, accepts: str | None, command: str | None, jobs: int) -> Status:
    """Carry on every interrupted run of `agent`; the worst status of them. Raises what `runner.list_runs` raises."""
    found = [(entry, _why_left(agent, runs, entry)) for entry in runner.list_runs(options.existing(runs))]
    left = Counter(why for _, why in found if why)
    if left:
        out.err(f"refold: left alone: {', '.join(f'{count} {why}' for why, count in left.items())}")
    go = functools.partial(runner.resume, agent=agent, runs=runs, accept_workspace=accepts)
    work = _All(go, command, jobs)
    asyncio.run(work.carry_on([entry for entry, why in found if why is None]))
    if work.interrupted:
        out.err(f"refold: not resumed: {', '.join(work.not_resumed) or 'no other run'}")
    return next(worst for worst in WORST_FIRST if worst in work.had)


def _why_left(agent: load_agent.AnyAgent, runs: str, entry: runner.RunInfo) -> str | None:
    """Why a run is left alone, "" for one that needs nobody; None for one of this agent's that is interrupted.

    One is interrupted that was going on when its process ended, or waits for a person, perhaps with answers by now; and
    a damaged one, unless its good lines say that it is another agent's.
    """
    status = entry.status
    if status is None:
        return None if _owner(runs, entry.run) in (agent.name, "") else ""
    if status.agent != agent.name:
        return f"of agent {status.agent}" if status.phase != "done" else ""
    if status.phase == "new" or status.closed:
        return ""
    if status.parent_call is not None:
        return f"of parent {status.parent_call.run}"
    return None if status.stopped in (None, "Interrupted") else f"stopped ({status.stopped})"


def _owner(runs: str, run: str) -> str:
    """The agent that the good lines of a run name, if they do."""
    try:
        return runner.review.audit(run, runs).story.agent
    except (eventlog.LogError, OSError):
        return ""


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@load_agent.option
@load_agent.model
@options.runs
@click.option("--all", "every", is_flag=True, help="Every interrupted run of this agent; stopped ones are left alone.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="With --all: so many at a time.")
@options.workspace(help="Where the workspace is now, if it was moved; its files must be as RUN left them.")
@click.option("--accept-workspace", is_flag=True, help="Accept files that no longer hold what the run wrote.")
@options.by
@ask.option
@options.limits
def resume(  # noqa: PLR0913 (each is an option)
    run: str | None,
    source: load_agent.Source,
    model: str | None,
    runs: str,
    who: str,
    on_question: str | None,
    workspace: Path | None,
    *,
    jobs: int,
    every: bool,
    accept_workspace: bool,
    limited: options.Limited,
) -> None:
    """Carry a run on from its log, in any process.

    With --all, every interrupted run of the agent is carried on, --jobs at a time. One that another process holds is
    skipped. The worst exit status wins: 5, 1, 4, 3, 6, 0.
    """
    if every == (run is not None):
        raise click.UsageError("give either RUN or --all")
    if every and workspace is not None:
        raise click.UsageError("--workspace is the place of one run's files; give RUN")
    agent = source.agent(runner.read_state(run, runs) if run is not None and source.takes_state() else None, model)
    agent = agent.replace(limits=limited(agent.limits))
    accepts = who if accept_workspace else None
    if run is None:
        leave(resume_all(agent, runs, accepts=accepts, command=on_question, jobs=jobs))
    go = functools.partial(runner.resume, run, agent, runs=runs, workspace=workspace, accept_workspace=accepts)
    go_on = functools.partial(again, source.spec, model, runs)
    leave(drive.status(drive.carry_on(go, runs, go_on, command=on_question)))


def again(agent: str, model: str | None, runs: str, run: str) -> str:
    """The command that goes on with a run."""
    other = f" --model {shlex.quote(model)}" if model is not None else ""
    return f"refold resume {shlex.quote(run)} --agent {shlex.quote(agent)}{other} --runs {options.shown(runs)}"
