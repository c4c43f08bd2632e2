"""`refold resume`: carry one run on, or after a deploy every interrupted run of an agent."""

import functools
import shlex
from pathlib import Path

import click

import runner
from runner._cli import drive, load_agent, options
from runner._cli._commands import resume_all
from runner._cli._io import hook
from runner._cli._io.errors import leave


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@load_agent.option
@load_agent.model
@options.runs
@click.option("--all", "every", is_flag=True, help="Every interrupted run of this agent; stopped ones are left alone.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, metavar="N", help="With --all: so many at a time.")
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the workspace is now, if it was moved; its files must be as RUN left them.",
)
@click.option("--accept-workspace", is_flag=True, help="Accept files that no longer hold what the run wrote.")
@options.by
@hook.option
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
    if every:
        options.existing(runs)
    agent = source.agent(runner.read_state(run, runs) if run is not None and source.takes_state() else None, model)
    agent = agent.replace(limits=limited(agent.limits))
    accepts = who if accept_workspace else None
    if run is None:
        leave(resume_all.resume_all(agent, runs, accepts=accepts, command=on_question, jobs=jobs))
    go = functools.partial(runner.resume, run, agent, runs=runs, workspace=workspace, accept_workspace=accepts)
    go_on = functools.partial(again, source.spec, model, runs)
    leave(drive.status(drive.carry_on(go, runs, go_on, command=on_question)))


def again(agent: str, model: str | None, runs: str, run: str) -> str:
    """The command that goes on with a run."""
    other = f" --model {shlex.quote(model)}" if model is not None else ""
    return f"refold resume {shlex.quote(run)} --agent {shlex.quote(agent)}{other} --runs {options.shown(runs)}"
