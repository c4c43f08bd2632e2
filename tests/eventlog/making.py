"""Logs for tests: made through the public face, then broken by hand as a disk or a hand would break them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import eventlog

if TYPE_CHECKING:
    from pathlib import Path

    from eventlog._disk import Disk

AT = datetime(2026, 11, 29, 15, 14, 58, 123456, tzinfo=UTC)
OPENING = b'{"type":"opened"}'


def event(number: int, size: int = 0) -> bytes:
    """Make the bytes of one event, padded by `size` bytes that differ from event to event."""
    return b'{"type":"noted","n":%d,"text":"%b"}' % (number, (b"%d-" % number * size)[:size])


def made(runs: Path, run: str = "r", *, saves: int = 3, size: int = 20, end: str = "close") -> Path:
    """Make a log of a header, an opening and `saves` lines, then `close` or `abandon` it; return its segment."""
    log = eventlog.create(runs, run, at=AT, events=[OPENING])
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
    log = eventlog.create(runs, "r", at=AT, events=[OPENING])
    found = [head(runs).read_bytes()]
    for number in range(saves):
        log.append(AT + timedelta(seconds=number), [event(number, size)])
        found.append(head(runs).read_bytes())
    log.abandon()
    return found


def numbers(runs: Path, run: str = "r") -> list[int]:
    """Read a log and give its lines' numbers."""
    return [line.seq for line in eventlog.read(runs, run).lines]


def goes_on(runs: Path, run: str = "r", *, disk: Disk | None = None) -> eventlog.Log:
    """Open a log, save one more line, close it, and read it back whole."""
    log = eventlog.open(runs, run, disk=disk) if disk else eventlog.open(runs, run)
    saved = log.append(AT + timedelta(days=1), [event(999)])
    log.close()
    assert eventlog.read(runs, run).lines[-1] == saved
    return log


def files(directory: Path) -> dict[str, bytes]:
    """Give every file of a directory with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}
