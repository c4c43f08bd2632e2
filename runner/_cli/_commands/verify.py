"""`refold verify`: whether a log is whole, what it can be trusted to survive, and the sum to keep elsewhere."""

from collections.abc import Iterator

import click

import eventlog
import replay
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Status, leave, say


@click.command()
@options.run
@options.runs
@click.option("--expect", metavar="SUM", help="A sum kept elsewhere: the log must hold the line that had it.")
@options.json
def verify(run: str, runs: str, *, expect: str | None, as_json: bool) -> None:
    """Check every line of RUN's log.

    The checksum of each line, its place in the chain, the head, and that the events make a legal history.
    """
    store = eventlog.store(runs)
    verdict = store.verify(run, expect=expect)
    if as_json:
        out.as_json(verdict)
    else:
        out.rows(list(_page(verdict)))
    if not verdict.ok:
        leave(Status.DAMAGED)
    try:
        replay.load(store.read(run).lines)  # from the first line on, whatever a snapshot says
    except Exception as error:  # noqa: BLE001 (good lines whose events make no history: said like any error)
        say(error)
        leave(Status.DAMAGED)


def _page(verdict: eventlog.Verdict) -> Iterator[out.Row]:
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
