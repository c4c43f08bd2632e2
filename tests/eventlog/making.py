"""Logs for tests: made through the public face, then broken by hand as a disk or a hand would break them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import eventlog
from eventlog import _frame
from eventlog._line import Header
from tests.support import ROOT

if TYPE_CHECKING:
    from eventlog._disk import Disk

AT = datetime(2026, 11, 29, 15, 14, 58, 123456, tzinfo=UTC)
OPENING = b'{"type":"opened"}'


def event(number: int, size: int = 0) -> bytes:
    """Make the bytes of one event, padded by `size` bytes that differ from event to event."""
    return b'{"type":"noted","n":%d,"text":"%b"}' % (number, (b"%d-" % number * size)[:size])


def made(runs: Path, run: str = "r", *, saves: int = 3, size: int = 20, end: str = "close") -> Path:
    """Make a log of a header, an opening and `saves` lines, then `close` or `abandon` it; return its segment."""
    log = eventlog.store(runs).create(run, at=AT, events=[OPENING])
    for number in range(saves):
        log.append(AT + timedelta(seconds=number), [event(number, size)])
    getattr(log, end)()
    return segment(runs, run)


def segment(runs: Path, run: str = "r", number: int = 1) -> Path:
    """Name a segment's file."""
    return runs / run / f"seg-{number:06d}.jsonl"


def head(runs: Path, run: str = "r") -> Path:
    """Name the head's file."""
    return runs / run / "head"


def lines_of(path: Path) -> list[bytes]:
    """Split a segment into its lines, newlines kept and zeros left out."""
    return [line + b"\n" for line in path.read_bytes().rstrip(b"\0").split(b"\n")[:-1]]


def heads(runs: Path, *, saves: int, size: int = 20) -> list[bytes]:
    """Give the head's bytes as they were after each save of such a log, the opening first."""
    log = eventlog.store(runs).create("r", at=AT, events=[OPENING])
    found = [head(runs).read_bytes()]
    for number in range(saves):
        log.append(AT + timedelta(seconds=number), [event(number, size)])
        found.append(head(runs).read_bytes())
    log.abandon()
    return found


def numbers(runs: Path, run: str = "r") -> list[int]:
    """Read a log and give its lines' numbers."""
    return [line.seq for line in eventlog.store(runs).read(run).lines]


def goes_on(runs: Path, run: str = "r", *, disk: Disk | None = None) -> eventlog.Log:
    """Open a log, save one more line, close it, and read it back whole."""
    log = eventlog.Directory(runs, disk=disk).open(run) if disk else eventlog.store(runs).open(run)
    saved = log.append(AT + timedelta(days=1), [event(999)])
    log.close()
    assert eventlog.store(runs).read(run).lines[-1] == saved
    return log


def files(directory: Path) -> dict[str, bytes]:
    """Give every file of a directory with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


def rolled(runs: Path, *, segments: int = 3) -> list[Path]:
    """Make a log of several segments, sealed as a roll would leave them, each with a header and two lines."""
    path = made(runs, saves=1)
    header = eventlog.store(runs).read("r").lines[0].header
    assert header is not None
    paths, seq, prev = [path], 2, eventlog.store(runs).read("r").lines[-1].sum
    for number in range(2, segments + 1):
        content = b""
        for step in range(3):
            what = Header(eventlog.FORMAT, "r", header.nonce, number, header.storage) if step == 0 else [event(step)]
            seq += 1
            line = _frame.build(seq, 1, AT, prev, what)
            prev = _frame.parse(line).sum
            content += line
        paths.append(segment(runs, number=number))
        paths[-1].write_bytes(content)
    head(runs).unlink()
    return paths


def child(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """Start a Python process that imports our packages."""
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return] # the options are passed on
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **options,
    )
