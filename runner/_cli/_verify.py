"""`refold verify`: whether a log is whole, what it can be trusted to survive, and the sum to keep elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

import eventlog
import replay
from runner._cli import _options, _out
from runner._cli._errors import Status, leave, say


@click.command()
@_options.run
@_options.runs
@click.option("--expect", metavar="SUM", help="A sum kept elsewhere: the log must hold the line that had it.")
@_options.json
def verify(run: str, runs: Path, *, expect: str | None, as_json: bool) -> None:
    """Check every line of RUN's log.

    Its sum, its place in the chain, what the head witnessed, and that its events make a history.
    """
    verdict = eventlog.verify(runs, run, expect=expect)
    if as_json:
        _out.as_json(verdict)
    else:
        _out.rows(list(_page(verdict)))
    if not verdict.ok:
        leave(Status.DAMAGED)
    try:
        replay.load(eventlog.read(runs, run).lines)  # from the first line on, whatever a snapshot says
    except Exception as error:  # noqa: BLE001 (good lines whose events make no history: said like any error)
        say(error)
        leave(Status.DAMAGED)


def _page(verdict: eventlog.Verdict) -> Iterator[_out.Row]:
    yield "run", verdict.run
    if verdict.ok:
        yield "verdict", "whole"
    else:
        yield "verdict", "damaged" if verdict.damage is not None else "not the log that had the expected sum"
    for part in verdict.segments:
        yield (
            part.file,
            f"lines {part.first} to {part.last} good, {part.bytes:,} bytes, then {part.zeros:,} zeros",
        )
    for snapshot in verdict.snapshots:
        if not snapshot.why:
            yield snapshot.file, f"of line {snapshot.seq}, version {snapshot.version}, {snapshot.size:,} bytes"
    yield "lives", str(verdict.lives)
    yield "head", {"open": "open: a writer is at work, or died", "closed": "closed", "missing": "missing"}[verdict.head]
    if verdict.storage is not None:
        yield "storage", f"{verdict.storage.kind}; survives a {verdict.storage.survives}"
    if verdict.expected:
        yield "expected", "the log holds the line with the expected sum"
    for finding in verdict.findings:
        yield "finding", finding
    yield "last line", str(verdict.seq)
    yield "sum", f"{verdict.sum}\nKeep it elsewhere: only against a sum kept elsewhere does --expect show tampering."
