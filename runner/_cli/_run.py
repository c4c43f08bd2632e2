"""`refold run`: a user's own agent, started from the command line."""

from __future__ import annotations

import functools
from pathlib import Path

import click

import runner
from runner._cli import _agents, _carry, _hook, _options
from runner._cli._errors import leave
from runner._cli._resume import again


@click.command()
@click.argument("task", metavar="TASK")
@_agents.option
@_agents.model
@_options.runs
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The directory that the agent's tools write in.",
)
@click.option("--after", metavar="RUN", help="Continue the conversation of RUN, which is done, in a new run.")
@_hook.option
@_options.limits
def run(
    task: str,
    agent: str,
    model: str | None,
    runs: Path,
    workspace: Path | None,
    after: str | None,
    on_question: str | None,
    *,
    max_resumes: int | None,
    max_turns: int | None,
    max_dollars: float | None,
) -> None:
    """Start a run of your own agent with TASK.

    Its answer is printed on stdout; progress, and the run's id first of all, on stderr. If the process dies,
    `refold resume` goes on.
    """
    loaded = _agents.load(agent, model)
    loaded = loaded.replace(limits=_options.limited(loaded.limits, max_resumes, max_turns, max_dollars))
    go = functools.partial(runner.start, loaded, task, runs=runs, workspace=workspace, after=after)
    leave(_carry.status(_carry.carry(go, runs, functools.partial(again, agent, model, runs), command=on_question)))
