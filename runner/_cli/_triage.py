"""`refold triage`: the job that shows what refold is for, carried on from whatever moment its process died."""

from __future__ import annotations

import functools
import importlib.util
import shlex
from pathlib import Path
from types import ModuleType
from typing import Literal

import click

import runner
from runner._cli import _carry, _options, _out
from runner._cli._errors import Refused, Status, leave

TASK = "m1-done-after-delete"
NEEDS = ("httpx", "pytest", "starlette", "uvicorn")

world = click.option(
    "--world",
    type=click.Path(path_type=Path),
    metavar="DIR",
    show_default="RUNS.world/TASK",
    help="Where the workspace and the tracker's file are.",
)
task = click.option("--task", default=TASK, show_default=True, metavar="T", help="The task's name.")


@click.command()
@task
@_options.runs
@world
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
@_options.limits
def triage(  # noqa: PLR0913 (each of the command's options is an argument)
    task: str,
    runs: Path,
    world: Path | None,
    approve: Literal["ask", "off"],
    die_after: str | None,
    die_before: str | None,
    *,
    new: bool,
    accept_workspace: bool,
    max_resumes: int | None,
    max_turns: int | None,
    max_dollars: float | None,
) -> None:
    """Triage crashes: the demonstration job, start or resume.

    A recorded model works on a real workspace and a real tracker. The task's newest run is carried on whatever its
    phase; one that is done prints its answer again and asks no model. Then the world it left is checked.
    """
    app = needed("triage")
    limits = _options.limited(app.LIMITS, max_resumes, max_turns, max_dollars)
    job = app.Job.of(task, runs, world, approve=approve, die_before=die_before, die_after=die_after, limits=limits)
    accepts = _options.account() if accept_workspace else None
    go = functools.partial(job.run, new=new, accept_workspace=accepts)
    try:
        result = _carry.carry(go, runs, lambda _: again(task, runs, world, approve))
    except Refused:
        _missed(die_before, die_after)
        raise
    missed = _missed(die_before, die_after)
    if isinstance(result, runner.Paused):
        leave(Status.WAITING)
    outcomes = job.check(result.run)
    for outcome in outcomes:
        _out.out(str(outcome))
    passed = sum(outcome.ok for outcome in outcomes)
    _out.out(f"{passed}/{len(outcomes)}")
    if missed or passed < len(outcomes):
        leave(Status.FAILED)


def again(task: str, runs: Path, world: Path | None, approve: str) -> str:
    """The command that goes on with the newest run of the task."""
    words = ["refold", "triage", "--task", task, "--runs", str(runs), *(["--world", str(world)] if world else [])]
    return shlex.join([*words, "--approve", approve])


def _missed(die_before: str | None, die_after: str | None) -> bool:
    """Whether this process was to die at a tool and is still here; said on stderr."""
    if die_before is not None:
        _out.err(f"refold: --die-before {die_before}: this life did not call {die_before}")
    if die_after is not None:
        _out.err(f"refold: --die-after {die_after}: no call of {die_after} returned in this life")
    return die_before is not None or die_after is not None


def needed(command: str) -> ModuleType:
    """`runner.triage`, once all that it needs is installed. Raises `Refused`, which says what to install."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(
            f"refold {command} needs {', '.join(missing)}, not installed here",
            "Install the extra: pip install 'refold[triage]'",
        )
    from runner import triage as app

    return app
