"""`refold cat`: a run's lines exactly as they stand on disk, so that every sum in them can be checked.

Only good lines are printed, byte for byte, without the zeros after them. A save that never finished
and damage are said on stderr. On a terminal alone, characters that it would obey, or not show, are written as JSON
escapes, which mean the same.
"""

import sys
from collections.abc import Iterable

import click

import eventlog
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Status, leave, say
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
        say(reading.damage)
        leave(Status.DAMAGED)


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
