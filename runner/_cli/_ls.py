"""`refold ls`: every run of a directory, newest first, a damaged one among the others with its problem."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from runner._cli import _options, _out, _words
from runner._cli._survey import Row, survey

PHASES = ("new", "model", "tools", "paused", "done")
ANY = "any reason"

Wanted = Callable[[Row], bool]


@click.command()
@_options.runs
@click.option("--phase", type=click.Choice(PHASES), multiple=True, help="Only runs in this phase; may be repeated.")
@click.option("--task", metavar="TEXT", help="Only runs whose task holds TEXT.")
@click.option(
    "--stopped", metavar="[REASON]", is_flag=False, flag_value=ANY, help="Only stopped runs, or those with this reason."
)
@click.option(
    "--older-than", type=_options.age, metavar="AGE", help="Only runs last saved longer ago: 90s, 15m, 2h, 7d."
)
@click.option("--newer-than", type=_options.age, metavar="AGE", help="Only runs last saved more recently.")
@_options.json
def ls(
    runs: Path,
    *,
    phase: tuple[str, ...],
    task: str | None,
    stopped: str | None,
    older_than: timedelta | None,
    newer_than: timedelta | None,
    as_json: bool,
) -> None:
    """List the runs, newest first.

    A run that can't be read is listed among the others, with its problem, unless a filter asks for what it can't tell.
    """
    now = datetime.now(UTC)
    filters: list[Wanted] = []
    if phase:
        filters.append(lambda row: row.phase in phase)
    if task is not None:
        filters.append(lambda row: row.task is not None and task in row.task)
    if stopped is not None:
        filters.append(lambda row: row.stopped is not None and stopped in (ANY, row.stopped))
    if older_than is not None:
        filters.append(lambda row: row.at is not None and now - row.at > older_than)
    if newer_than is not None:
        filters.append(lambda row: row.at is not None and now - row.at <= newer_than)
    found = [row for row in survey(runs) if all(wanted(row) for wanted in filters)]
    if as_json:
        _out.as_json([row._asdict() for row in found])
    elif found:
        _out.table(("RUN", "PHASE", "TURNS", "SPENT", "SAVED", "TASK"), [_cells(row, now) for row in found])
    else:
        _out.err("No such runs." if filters else f"No runs in {runs}.")


def _cells(row: Row, now: datetime) -> tuple[str, ...]:
    if row.problem is not None:
        return row.run, "unreadable", "", "", "", row.problem
    phase = row.phase or ""
    saved = _ago(now - row.at) if row.at is not None else ""
    return (
        row.run,
        f"{phase}, stopped: {row.stopped}" if row.stopped else phase,
        str(row.turns),
        _words.money(row.dollars),
        saved,
        _out.line(row.task or "", 60),
    )


def _ago(age: timedelta) -> str:
    seconds = max(int(age.total_seconds()), 0)
    for name, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{name} ago"
    return f"{seconds}s ago"
