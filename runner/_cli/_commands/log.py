"""`refold cat`, `verify`, `compact`, `copy` and `migrate`: a run's log as it is stored.

`cat` prints good lines only, byte for byte, so that every sum in them can be checked, without the zeros after them. A
save that never finished and damage are said on stderr. On a terminal alone, characters that it would obey, or not show,
are written as JSON escapes, which mean the same.
"""

import sys
from collections.abc import Iterable, Iterator

import click

import eventlog
import replay
import runner
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused, Status, leave, say
from runner._cli._render.escape import in_json


@click.command()
@options.run
@options.runs
@click.option("--json", is_flag=True, expose_value=False, help="Changes nothing: the lines are JSON already.")
def cat(run: str, runs: str) -> None:
    """Print the lines of RUN's log as they stand on disk.

    One line is one save, in JSON, so that jq reads it. The zeros after the last line are left out.
    """
    store = eventlog.store(runs)
    reading = store.scan(run)
    _print(store.raw(reading))
    if reading.torn is not None:
        torn = reading.torn
        out.err(f"refold: {torn.file} ends in {torn.size} bytes of a save that has not finished, not printed")
    if reading.damage is not None:
        raise reading.damage


def _print(pieces: Iterable[bytes]) -> None:
    """The lines, as they come."""
    if out.on_terminal():
        for text in b"".join(pieces).decode().split("\n")[:-1]:
            sys.stdout.write(in_json(text) + "\n")
        return
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


@click.command()
@options.reads
@click.option("--expect", metavar="SUM", help="A sum kept elsewhere: the log must hold the line that had it.")
def verify(run: str, runs: str, *, expect: str | None, as_json: bool) -> None:
    """Check every line of RUN's log.

    The checksum of each line, its place in the chain, the head, and that the events make a legal history.
    """
    store = eventlog.store(runs)
    verdict = store.verify(run, expect=expect)
    if as_json:
        out.as_json(verdict)
    else:
        out.rows(_page(verdict))
    if not verdict.ok:
        leave(Status.DAMAGED)
    try:
        replay.load(store.read(run).lines)  # from the first line on, whatever a snapshot says
    except Exception as error:  # noqa: BLE001 (good lines whose events make no history: said like any error)
        say(error)
        leave(Status.DAMAGED)


def _page(verdict: eventlog.Verdict) -> Iterator[out.Row]:
    yield "run", verdict.run
    wrong = "damaged" if verdict.damage is not None else "not the log that had the expected sum"
    yield "verdict", "whole" if verdict.ok else wrong
    for part in verdict.segments:
        ahead = f", then {part.zeros:,} zeros laid ahead" if part.zeros else ""
        yield part.file, f"lines {part.first} to {part.last} good, {part.bytes:,} bytes{ahead}"
    for snapshot in verdict.snapshots:
        if not snapshot.why:
            yield snapshot.file, f"of line {snapshot.seq}, version {snapshot.version}, {snapshot.size:,} bytes"
    yield "lives", str(verdict.lives)
    yield "head", {"open": "open: a writer is at work, or died", "closed": "closed", "missing": "missing"}[verdict.head]
    yield "storage", None if (on := verdict.storage) is None else f"{on.kind}; survives a {on.survives}"
    yield "expected", "the log holds the line with the expected sum" if verdict.expected else None
    for finding in verdict.findings:
        yield "finding", finding
    yield "last line", str(verdict.seq)
    yield "sum", f"{verdict.sum}\nKeep it elsewhere: only against a sum kept elsewhere does --expect show tampering."


@click.command()
@options.run
@options.runs
def compact(run: str, runs: str) -> None:
    """Keep a snapshot of RUN's state.

    The next resume starts from it. Every event stays.
    """
    snapshot = runner.compact(run, runs=runs)
    out.rows([("run", run), ("line", str(snapshot.seq)), ("snapshot", f"{snapshot.size:,} bytes")])


@click.command()
@options.run
@click.argument("directory", metavar="DIR")
@options.runs
def copy(run: str, directory: str, runs: str) -> None:
    """Copy RUN into DIR, a directory of runs.

    The copy can be verified and shown like the run. It is not carried on, so nothing is done twice: whoever has lost
    the run itself may remove the file `copy` from it.
    """
    eventlog.store(runs).copy(run, directory)
    verdict = eventlog.Directory(directory).verify(run)
    out.rows([("copy", f"{directory}/{run}"), ("lines", str(verdict.seq + 1)), ("sum", verdict.sum)])


@click.command()
@options.runs
def migrate(runs: str) -> None:
    """Make or bring up the tables of a database.

    Once, and after an upgrade. They only go forward.
    """
    if "://" not in runs:
        raise Refused(f"{runs} is a directory", "Only a database needs this: --runs postgresql://USER@HOST/DATABASE.")
    store = eventlog.store(runs)
    from eventlog.postgres import migrate as bring_up

    before, after = bring_up(runs)
    schema = f"{after}" if before == after else f"{before or 'none'} to {after}"
    out.rows([("database", str(store)), ("schema", schema)])
