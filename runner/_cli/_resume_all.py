"""`refold resume --all`: after a deploy, every interrupted run of one agent, one after the other.

A run is interrupted when its process died, or a signal parked it. A run that stopped for any other reason waits for
somebody to see to that reason. What can't be carried on is said and passed by, so that one bad run does not keep the
others waiting.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import eventlog
import replay
import runner
from replay import State
from runner._cli import _carry, _hook, _out
from runner._cli._errors import WORST_FIRST, Status, say, status
from runner._cli._watch import Lines


def resume_all(agent: runner.Agent, runs: Path, *, accepts: str | None, command: str | None) -> Status:
    """Carry on every interrupted run of `agent`; the worst status of them. Raises what `runner.listed` raises."""
    had = {Status.FINISHED}
    entries = [entry for entry in runner.listed(runs) if _concerns(agent, runs, entry)]
    for place, entry in enumerate(entries, start=1):
        if entry.problem is not None:
            say(entry.problem)
            had.add(_grave(entry.problem))
            continue
        try:
            result = _one(agent, runs, entry.run, accepts, command)
        except Exception as error:  # noqa: BLE001 (an agent's own errors too: said, and the next run gets its turn)
            say(error)
            had.add(_grave(error))
            _out.out(f"{entry.run}  {'skipped' if isinstance(error, eventlog.RunLocked) else 'stopped or failed'}")
            if isinstance(error, runner.Interrupted):  # somebody wants this process to end
                _out.err(f"refold: not resumed: {', '.join(left.run for left in entries[place:]) or 'no other run'}")
                break
            continue
        had.add(_carry.status(result))
        if isinstance(result, runner.Finished):
            _out.out(f"{entry.run}  done")
        else:
            _out.out(f"{entry.run}  waits for a person: {', '.join(question.id for question in result.questions)}")
    return next(worst for worst in WORST_FIRST if worst in had)


def _grave(error: Exception) -> Status:
    """The status of one run's error; what would be a mistake of the command line is here a run that failed."""
    return found if (found := status(error)) in WORST_FIRST else Status.FAILED


def _one(agent: runner.Agent, runs: Path, run: str, accepts: str | None, command: str | None) -> _carry.Result:
    watch = Lines(run)
    hook = _hook.Command(command, watch) if command is not None else None
    return asyncio.run(runner.resume(run, agent, runs=runs, accept_workspace=accepts, watch=watch, on_question=hook))


def _concerns(agent: runner.Agent, runs: Path, entry: runner.Listed) -> bool:
    """Whether a run is this agent's and interrupted. A damaged one is, unless its good lines say it is another's."""
    state = entry.state
    if state is None:
        return _owner(runs, entry.run) in (agent.name, None)
    return state.agent == agent.name and is_interrupted(state)


def is_interrupted(state: State) -> bool:
    """Whether a run was going on when its process ended, or waits for a person, perhaps with answers by now."""
    if state.phase in ("new", "done"):
        return False
    return state.stopped is None or (state.stopped.reason == "Interrupted" and not state.stopped.final)


def _owner(runs: Path, run: str) -> str | None:
    """The agent that the first good lines of a run name, if they do."""
    try:
        for line in eventlog.scan(runs, run).lines:
            for event in (replay.decode(raw, seq=line.seq) for raw in line.events):
                if isinstance(event, replay.RunStarted):
                    return event.agent
    except (eventlog.LogError, replay.ReplayError, OSError):
        pass
    return None
