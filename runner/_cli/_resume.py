"""`refold resume`: carry one run on, or after a deploy every interrupted run of an agent."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path

import click

import runner
from runner._cli import _agents, _carry, _hook, _options, _resume_all
from runner._cli._errors import leave


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@_agents.option
@_agents.model
@_options.runs
@click.option("--all", "every", is_flag=True, help="Every interrupted run of this agent; stopped ones are left alone.")
@click.option("--accept-workspace", is_flag=True, help="Vouch for files that no longer hold what the run wrote.")
@_options.by
@_hook.option
@_options.limits
def resume(  # noqa: PLR0913 (each of the command's options is an argument)
    run: str | None,
    agent: str,
    model: str | None,
    runs: Path,
    who: str,
    on_question: str | None,
    *,
    every: bool,
    accept_workspace: bool,
    max_resumes: int | None,
    max_turns: int | None,
    max_dollars: float | None,
) -> None:
    """Carry RUN on, from any process.

    With --all, every interrupted run of the agent is carried on in turn. One that another process holds is skipped.
    The worst exit status wins: 5, 1, 4, 3, 0.
    """
    if every == (run is not None):
        raise click.UsageError("give either RUN or --all")
    loaded = _agents.load(agent, model)
    loaded = loaded.replace(limits=_options.limited(loaded.limits, max_resumes, max_turns, max_dollars))
    accepts = who if accept_workspace else None
    if run is None:
        leave(_resume_all.resume_all(loaded, runs, accepts=accepts, command=on_question))
    go = functools.partial(runner.resume, run, loaded, runs=runs, accept_workspace=accepts)
    leave(_carry.status(_carry.carry(go, runs, functools.partial(again, agent, model, runs), command=on_question)))


def again(agent: str, model: str | None, runs: Path, run: str) -> str:
    """The command that goes on with a run."""
    other = f" --model {shlex.quote(model)}" if model is not None else ""
    return f"refold resume {shlex.quote(run)} --agent {shlex.quote(agent)}{other} --runs {shlex.quote(str(runs))}"
