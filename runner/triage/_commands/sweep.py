"""`refold sweep`: the triage job crashed at every point, and what came of it, as a table.

The modes `memory` to `late` are simulated and repeat exactly. `kill` is a sample of the same points with real
processes, syncs and signals; `--random` kills the larger jobs at random moments. The status is 0 when nothing went
wrong, else 1: then every failure is named by an id, and `--only ID` runs it again.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal

import click
from rich.console import Console
from rich.progress import Progress

from runner import testing, triage
from runner.commands import Status, leave, options, out
from runner.triage import _commands

KILL = "kill"
MODES = (*testing.MODES, KILL)
PAIRS = 2
KILLS = 20
"""Points of mode `kill`, each with one death and with two: they take about a second each."""
_TAKEN: dict[str, tuple[Literal["keys", "lookups"], ...]]
_TAKEN = {"keys": ("keys",), "lookups": ("lookups",), "both": ("keys", "lookups")}


def _pairs(_ctx: click.Context, _param: click.Parameter, value: str) -> int | Literal["all"]:
    if value == "all":
        return "all"
    if not value.isdecimal():
        raise click.BadParameter(f"{value!r} is neither a number nor 'all'")
    return int(value)


@click.command()
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    help="Only this kind of trouble; may be given more than once. Default: all of them.",
)
@click.option(
    "--without",
    type=click.Choice(list(_TAKEN)),
    help="Take the tools' keys away, their lookups, or both: then a person is asked more often.",
)
@click.option(
    "--pairs",
    callback=_pairs,
    default=str(PAIRS),
    show_default=True,
    metavar="N|all",
    help="Second crashes tried after each first one: so many of them, drawn with the seed, or all.",
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="What is drawn is drawn from this number.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=lambda: os.cpu_count() or 1,
    show_default="all processors",
    metavar="N",
    help="Processes that share the work.",
)
@click.option("--only", metavar="ID", default="", help="Run one scenario again, by the id that a failure names.")
@options.aged(
    "--random", help="For so long (60s, 5m) kill the larger jobs and their trackers at random moments instead."
)
@options.runs
@options.json
def sweep(
    runs: str,  # noqa: ARG001 (every command takes --runs; the sweep makes its own, and removes them)
    modes: tuple[str, ...],
    without: str | None,
    pairs: int | Literal["all"],
    seed: int,
    jobs: int,
    only: str,
    random: timedelta | None,
    *,
    as_json: bool,
) -> None:
    """Crash the triage job at every point and count the damage.

    A small triage job runs once to find every point where a crash can fall. Then for each of them: crash, resume,
    finish, and count duplicated and lost effects, replies paid for twice, and questions asked; then again with a second
    crash during the resume. All modes but `kill` are simulated: nothing in them sleeps.
    """
    _commands.check_extra("sweep")
    if random is not None:
        _random(random.total_seconds(), None if seed == 0 else seed, as_json=as_json)
        return
    kinds = (only.partition(":")[0],) if only else modes or MODES
    if unknown := [kind for kind in kinds if kind not in MODES]:
        raise click.BadParameter(f"{unknown[0]!r} is no mode; there are: {', '.join(MODES)}", param_hint="--only")
    found: list[testing.SweepReport] = []
    simulated = tuple(mode for mode in testing.MODES if mode in kinds)
    if simulated:
        with _progress("first points") as progress:
            given: dict[str, Any] = {"pairs": pairs, "seed": seed, "jobs": jobs, "only": only, "progress": progress}
            found.append(triage.sweep(modes=simulated, without=_TAKEN.get(without or "", ()), **given))
    if KILL in kinds:
        with _progress("SIGKILLs") as progress:
            found.append(triage.killed(KILLS, seed=seed, only=only, progress=progress))
    swept = testing.SweepReport.of(found)
    if as_json:
        out.as_json(swept)
    else:
        out.out(str(swept))
    if swept.failures:
        again = (
            f"refold sweep{f' --without {without}' if without else ''} --seed {seed} --only '{swept.failures[0].id}'"
        )
        out.err(f"refold: {len(swept.failures)} scenarios failed; run one again: {again}")
        leave(Status.FAILED)


def _random(seconds: float, seed: int | None, *, as_json: bool) -> None:
    """Random kills of real processes for so long."""
    failures: list[str] = []
    with _progress("seconds") as progress:
        rows = triage.random_kills(
            seconds, seed=seed, progress=lambda passed: progress(round(passed), round(seconds)), failed=failures.append
        )
    if as_json:
        out.as_json({"rows": rows, "failures": failures})
    else:
        out.out(testing.table(rows))
    for failure in failures:
        out.err(f"refold: {failure}")
    if failures:
        leave(Status.FAILED)


@contextmanager
def _progress(what: str) -> Iterator[testing.Progress]:
    """A bar where a person watches stderr, elsewhere nothing."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield lambda _done, _of: None
        return
    # Drawn when something is done, and by no thread: the sweep forks.
    with Progress(console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(what)

        def show(done: int, of: int) -> None:
            bar.update(task, completed=done, total=of, refresh=True)

        yield show
