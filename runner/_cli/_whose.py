"""Today's agent of a run, for the commands that hold a history against today's code.

A user's agent is named by `--agent`. A run of the triage job needs no naming: its agent is its task's, in the world
where the run works, whose tracker says what its tools' effects are.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click

import runner
from replay import State
from runner._cli import _agents, _triage
from runner._cli._errors import Refused, Status

option = click.option(
    "--agent",
    metavar="MODULE:ATTRIBUTE",
    help="Today's agent: a runner.Agent in a module importable here. A triage run's is known without it.",
)


class Agent(NamedTuple):
    """An agent, and the Python that makes it in a test: lines that import, and an expression."""

    agent: runner.Agent
    imports: tuple[str, ...]
    expression: str


def of(state: State, spec: str | None, runs: Path, command: str) -> Agent:
    """The agent that `spec` names, else that of the triage task which the run is named for.

    Raises `Refused`, status 2, when there is neither, and what loading an agent raises.
    """
    if spec is not None:
        module, _, path = spec.partition(":")
        return Agent(_agents.load(spec), (f"import {module}",), f"{module}.{path}")
    found = triage(state, runs, command)
    if found is None:
        why = f"{state.run} is a run of agent {state.agent!r}, which only you can name"
        raise Refused(why, f"refold {command} {state.run} --agent MODULE:ATTRIBUTE", Status.USAGE)
    expression = f'triage.Job.of("{state.agent}", HERE / "runs").agent()'
    return Agent(found, ("from runner import triage",), expression)


def triage(state: State, runs: Path, command: str) -> runner.Agent | None:
    """The agent of a run of the triage job, or None for any other run. Raises `Refused` when its extra is missing."""
    if state.agent not in _names():
        return None
    app = _triage.needed(command)
    world = Path(state.workspace).parent if state.workspace is not None else None
    agent: runner.Agent = app.Job.of(state.agent, runs, world, approve=state.approve).agent()
    return agent


def _names() -> tuple[str, ...]:
    """The triage job's tasks; none where its extra is not installed and the name is nobody's."""
    try:
        from runner import triage as app
    except ImportError:
        return ()
    return app.tasks()
