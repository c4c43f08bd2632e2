"""`refold resume --all`: after a deploy, every interrupted run of one agent, `--jobs` at a time in one event loop.

A run is interrupted when its process died, or a signal parked it. A run that stopped for any other reason waits for
somebody to see to that reason. What can't be carried on is said and passed by, so that one bad run does not keep the
others waiting.
"""

import asyncio
from collections.abc import Sequence

import eventlog
import replay
import runner
from replay.events import RunStarted
from runner._cli import drive, load_agent
from runner._cli._io import hook as _hook
from runner._cli._io import out
from runner._cli._io.errors import WORST_FIRST, Status, say, status
from runner._cli._io.progress import Lines


class _All:
    """The runs of one agent that are carried on, `jobs` at a time in one event loop; `had` is what they came to."""

    def __init__(
        self, agent: load_agent.AnyAgent, runs: str, accepts: str | None, command: str | None, jobs: int
    ) -> None:
        self.agent, self.runs, self.accepts, self.command = agent, runs, accepts, command
        self.had = {Status.FINISHED}
        self.not_resumed: list[str] = []
        self.interrupted = False
        self._room = asyncio.Semaphore(jobs)

    async def carry_on(self, entries: Sequence[runner.RunInfo]) -> None:
        """Carry on these runs."""
        await asyncio.gather(*(self._one(entry) for entry in entries))

    async def _one(self, entry: runner.RunInfo) -> None:
        async with self._room:
            if self.interrupted:
                self.not_resumed.append(entry.run)
                return
            if entry.problem is not None:
                say(entry.problem)
                self.had.add(_grave(entry.problem))
                return
            try:
                result = await self._resume(entry.run)
            except Exception as error:  # noqa: BLE001 (an agent's own errors too: said, and the others get their turn)
                self._say(entry.run, error)
                return
        self.had.add(drive.status(result))
        if isinstance(result, runner.Finished):
            out.out(f"{entry.run}  done")
        elif isinstance(result, runner.Paused):
            out.out(f"{entry.run}  waits for a person: {', '.join(question.id for question in result.questions)}")

    async def _resume(self, run: str) -> drive.Result:
        watch = Lines(run)
        hook = _hook.Command(self.command, watch) if self.command is not None else None
        accepts = self.accepts
        return await runner.resume(
            run, self.agent, runs=self.runs, accept_workspace=accepts, watch=watch, on_question=hook
        )

    def _say(self, run: str, error: Exception) -> None:
        say(error)
        self.had.add(_grave(error))
        out.out(f"{run}  {'skipped' if isinstance(error, eventlog.RunLocked) else 'stopped or failed'}")
        self.interrupted |= isinstance(error, runner.errors.Interrupted)  # somebody wants this process to end


def resume_all(agent: load_agent.AnyAgent, runs: str, *, accepts: str | None, command: str | None, jobs: int) -> Status:
    """Carry on every interrupted run of `agent`; the worst status of them. Raises what `runner.list_runs` raises."""
    found = list(runner.list_runs(runs))
    entries = [entry for entry in found if _concerns(agent, runs, entry)]
    left = [f"{entry.run} ({why})" for entry in found if entry not in entries and (why := _why_left(agent, entry))]
    if left:
        out.err(f"refold: left alone: {', '.join(left)}")
    work = _All(agent, runs, accepts, command, jobs)
    asyncio.run(work.carry_on(entries))
    if work.interrupted:
        out.err(f"refold: not resumed: {', '.join(work.not_resumed) or 'no other run'}")
    return next(worst for worst in WORST_FIRST if worst in work.had)


def _grave(error: Exception) -> Status:
    """The status of one run's error; what would be a mistake of the command line is here a run that failed."""
    found = status(error)
    return Status(found) if found in WORST_FIRST else Status.FAILED


def _concerns(agent: load_agent.AnyAgent, runs: str, entry: runner.RunInfo) -> bool:
    """Whether a run is this agent's and interrupted. A damaged one is, unless its good lines say it is another's."""
    status = entry.status
    if status is None:
        return _owner(runs, entry.run) in (agent.name, None)
    return status.agent == agent.name and _is_interrupted(status)


def _why_left(agent: load_agent.AnyAgent, entry: runner.RunInfo) -> str:
    """Why a run is not carried on; "" for one that needs nobody."""
    status = entry.status
    if status is not None and status.agent != agent.name:
        return f"a run of agent {status.agent}" if status.phase != "done" else ""
    if status is None or status.stopped is None or status.closed:
        return ""
    return f"stopped: {status.stopped}"


def _is_interrupted(status: runner.RunStatus) -> bool:
    """Whether a run was going on when its process ended, or waits for a person, perhaps with answers by now."""
    return status.phase != "new" and not status.closed and status.stopped in (None, "Interrupted")


def _owner(runs: str, run: str) -> str | None:
    """The agent that the first good lines of a run name, if they do."""
    try:
        for line in eventlog.store(runs).scan(run).lines:
            for event in (replay.decode(raw, seq=line.seq) for raw in line.events):
                if isinstance(event, RunStarted):
                    return event.agent
    except (eventlog.LogError, replay.ReplayError, OSError):
        pass
    return None
