"""`refold cat`: a run's lines exactly as they stand on disk, so that every sum in them can be checked.

Only good lines are printed, byte for byte, and none of the zeros that a writer laid ahead. A save that never finished
and damage are said on stderr. On a terminal alone, characters that it would obey are written as JSON escapes, which
mean the same.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

import eventlog
from runner._cli import _options, _out
from runner._cli._errors import Status, leave, say

CHUNK = 1 << 20

_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@click.command()
@_options.run
@_options.runs
@click.option("--json", is_flag=True, expose_value=False, help="Changes nothing: the lines are JSON already.")
def cat(run: str, runs: Path) -> None:
    """Print the lines of RUN's log as they stand on disk.

    One line is one save, in JSON, so that jq reads it. The zeros behind the last line are left out.
    """
    reading = eventlog.scan(runs, run)
    for segment in reading.segments:
        _print(runs / run / segment.file, segment.end)
    if reading.torn is not None:
        torn = reading.torn
        _out.err(f"refold: {torn.file} ends in {torn.size} bytes of a save that has not finished, not printed")
    if reading.damage is not None:
        say(reading.damage)
        leave(Status.DAMAGED)


def _print(file: Path, end: int) -> None:
    """The first `end` bytes of a segment."""
    if _out.on_terminal():
        for text in file.read_bytes()[:end].decode().split("\n")[:-1]:
            sys.stdout.write(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
        return
    sys.stdout.flush()
    with file.open("rb") as segment:
        while end > 0 and (chunk := segment.read(min(end, CHUNK))):
            sys.stdout.buffer.write(chunk)
            end -= len(chunk)
    sys.stdout.buffer.flush()
