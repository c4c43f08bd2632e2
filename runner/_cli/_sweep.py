"""`refold sweep`: the triage job crashed everywhere, and what that did to the world, as a table.

The modes `memory` to `late` are simulated and repeat exactly. `kill` is a sample of the same points with real
processes, syncs and signals; `--random` kills the larger jobs at random moments. The status is 0 when nothing went
wrong, else 1: then every failure is named by an id, and `--only ID` plays it again.
"""

from __future__ import annotations

import json as json_
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import click

from runner._cli import _options, _out
from runner._cli._errors import Status, leave
from runner._cli._triage import needed

if TYPE_CHECKING:
    from runner import crashtest

KILL = "kill"
MODES = ("memory", "power", "service", "person", "model", "late", KILL)
PAIRS = 2
KILLS = 20
"""Points of mode `kill`, each with one death and with two: they take about a second each."""
_TAKEN: dict[str, tuple[Literal["keys", "lookups"], ...]] = {
    "keys": ("keys",),
    "lookups": ("lookups",),
    "both": ("keys", "lookups"),
}


class Pairs(click.ParamType[Any]):
    """A number, or `all`."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["all"]:
        """Take what was typed."""
        if value == "all":
            return "all"
        if not str(value).isdecimal():
            self.fail(f"{value!r} is neither a number nor 'all'", param, ctx)
        return int(value)


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """An age in seconds."""
    return None if value is None else _options.age(value).total_seconds()


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
    type=Pairs(),
    default=PAIRS,
    show_default=True,
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
@click.option("--only", metavar="ID", default="", help="Play one scenario again, by the id that a failure names.")
@click.option(
    "--random",
    callback=_seconds,
    metavar="AGE",
    help="For so long (60s, 5m) kill the larger jobs and their trackers at random moments instead.",
)
@_options.runs
@_options.json
def sweep(
    runs: Path,  # noqa: ARG001 (every command takes --runs; the sweep makes its own, and removes them)
    modes: tuple[str, ...],
    without: str | None,
    pairs: int | Literal["all"],
    seed: int,
    jobs: int,
    only: str,
    random: float | None,
    *,
    as_json: bool,
) -> None:
    """Crash the triage job everywhere and count what happens.

    A small triage job runs once to find every point where a crash can land; then from scratch for each: crash, resume,
    finish, count; then again with a second crash during the resume. Effects that happened twice, that were lost,
    replies paid twice, questions that a person was asked. All modes but `kill` are simulated: nothing in them sleeps.
    """
    app = needed("sweep")
    if random is not None:
        _random(app, random, None if seed == 0 else seed, as_json=as_json)
        return
    kinds = (only.partition(":")[0],) if only else modes or MODES
    if unknown := [kind for kind in kinds if kind not in MODES]:
        raise click.BadParameter(f"{unknown[0]!r} is no mode; there are: {', '.join(MODES)}", param_hint="--only")
    found: list[crashtest.Swept] = []
    simulated = tuple(mode for mode in kinds if mode != KILL)
    if simulated:
        with _progress("first points") as progress:
            found.append(
                app.sweep(
                    modes=simulated,
                    without=_TAKEN[without] if without is not None else (),
                    pairs=pairs,
                    seed=seed,
                    jobs=jobs,
                    only=only,
                    progress=progress,
                )
            )
    if KILL in kinds:
        with _progress("SIGKILLs") as progress:
            found.append(app.killed(KILLS, seed=seed, only=only, progress=progress))
    _say(found, as_json=as_json)
    failures = [one for swept in found for one in swept.failures]
    if failures:
        again = f"refold sweep{f' --without {without}' if without else ''} --seed {seed} --only '{failures[0].id}'"
        _out.err(f"refold: {len(failures)} scenarios failed; play one again: {again}")
        leave(Status.FAILED)


def _say(found: list[crashtest.Swept], *, as_json: bool) -> None:
    """All of it in one: the points of the run, a row for each mode, and what failed."""
    from runner import crashtest

    rows = tuple(row for swept in found for row in swept.rows)
    swept = crashtest.Swept(found[0].points, rows, tuple(one for swept in found for one in swept.scenarios))
    if as_json:
        _out.as_json(json_.loads(swept.json()))
    else:
        _out.out(str(swept))


def _random(app: ModuleType, seconds: float, seed: int | None, *, as_json: bool) -> None:
    """Random kills of real processes for so long."""
    from runner import crashtest

    failures: list[str] = []
    with _progress("seconds") as progress:
        rows = app.random_kills(
            seconds,
            seed=seed,
            progress=lambda passed: progress(round(passed), round(seconds)),
            failed=failures.append,
        )
    if as_json:
        _out.as_json({"rows": rows, "failures": failures})
    else:
        _out.out(crashtest.table(rows))
    for failure in failures:
        _out.err(f"refold: {failure}")
    if failures:
        leave(Status.FAILED)


@contextmanager
def _progress(what: str) -> Iterator[crashtest.Progress]:
    """A bar where a person watches stderr, elsewhere nothing."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield lambda _done, _of: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # Drawn when something is done, and by no thread: the sweep forks.
    with Progress(console=Console(stderr=True), auto_refresh=False, transient=True) as bar:
        task = bar.add_task(what)

        def show(done: int, of: int) -> None:
            bar.update(task, completed=done, total=of, refresh=True)

        yield show
