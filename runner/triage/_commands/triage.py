"""`refold triage`: the job that shows what refold is for, carried on from whatever moment its process died."""

import functools
import shlex
from pathlib import Path
from typing import Literal

import click

import runner
from runner import commands
from runner.commands import Refused, Status, options, out
from runner.triage import _commands
from runner.triage._job import LIMITS, Job


@click.command()
@_commands.task
@options.runs
@_commands.world
@click.option(
    "--approve",
    type=click.Choice(["ask", "off"]),
    default="ask",
    show_default=True,
    help="Ask a person before an issue is filed, or answer yes in the policy's name.",
)
@click.option("--die-after", metavar="TOOL", help="SIGKILL this process when TOOL returns, before that is saved.")
@click.option("--die-before", metavar="TOOL", help="SIGKILL this process when TOOL is marked, before it runs.")
@click.option("--new", is_flag=True, help="Start another run instead of carrying the newest one on.")
@click.option("--accept-workspace", is_flag=True, help="Vouch for files that no longer hold what the run wrote.")
@options.limits
def triage(
    task: str,
    runs: str,
    world: Path | None,
    approve: Literal["ask", "off"],
    die_after: str | None,
    die_before: str | None,
    *,
    new: bool,
    accept_workspace: bool,
    limited: options.Limited,
) -> None:
    """Triage crashes: the demonstration job, start or resume.

    A recorded model works on a real workspace and a real tracker. The task's newest run is carried on whatever its
    phase; one that is done prints its answer again and asks no model. Then the result is checked.
    """
    _commands.check_extra("triage")
    died = {"die_before": die_before, "die_after": die_after}
    job = Job.of(task, runs, world, approve=approve, limits=limited(LIMITS), **died)
    accepts = options.account() if accept_workspace else None
    go = functools.partial(job.run, new=new, accept_workspace=accepts)
    try:
        result = commands.carry_on(go, runs, lambda _: again(task, runs, world, approve))
    except Refused:
        _missed(die_before, die_after)
        raise
    missed = _missed(die_before, die_after)
    if isinstance(result, runner.Paused):
        commands.leave(Status.WAITING)
    outcomes = job.check(result.run)
    for outcome in outcomes:
        out.out(str(outcome))
    passed = sum(outcome.ok for outcome in outcomes)
    out.out(f"{passed}/{len(outcomes)}")
    if missed or passed < len(outcomes):
        commands.leave(Status.FAILED)


def again(task: str, runs: str, world: Path | None, approve: str) -> str:
    """The command that goes on with the newest run of the task."""
    words = ["refold", "triage", "--task", task, "--runs", str(runs), *(["--world", str(world)] if world else [])]
    return shlex.join([*words, "--approve", approve])


def _missed(die_before: str | None, die_after: str | None) -> bool:
    """Whether this process was to die at a tool and is still here; said on stderr."""
    if die_before is not None:
        out.err(f"refold: --die-before {die_before}: this process did not call {die_before}")
    if die_after is not None:
        out.err(f"refold: --die-after {die_after}: no call of {die_after} returned in this process")
    return die_before is not None or die_after is not None
