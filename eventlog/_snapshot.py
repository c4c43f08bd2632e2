"""Snapshots: what a reader made of the lines so far, kept beside them so that a later opening need not start at line 0.

A snapshot is a cache: the log alone rebuilds the state, so a missing, unreadable or foreign snapshot is passed over,
and the log is folded from further back. But it is also a witness, like the head: it was written only after its line and
the header that follows were durable, and that header carries the digest of its state. Therefore a valid one that names
a line beyond those, another sum than the log's at its line, or another state than the header's, is proof of damage. So
nobody who can only put a file beside the log can have a run go on from a state that its lines do not make.

What the state means is the caller's business: it is one JSON value here, with the caller's number for how it was made.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from eventlog._atomic_write import write_atomically
from eventlog._disk import Disk, NotAFile
from eventlog._files import Files
from eventlog._frame import digest
from eventlog._line import Line
from eventlog._lock import Lock
from eventlog._names import snapshot_name, snapshot_seq
from eventlog.errors import NotStorable

MAX_SIZE: Final = 1024 * 1024 * 1024
"""Bytes: a file above this is not read into memory, so none is written."""
KEPT: Final = 2
_TAIL = len(b',"check":"' + b"0" * 32 + b'"}\n')


class Snapshot(msgspec.Struct, frozen=True):
    """The state after line `seq`, whose sum is `sum`; `version` says how it was made of the lines.

    `state` is one JSON value, `size` the bytes of its file.
    """

    run: str
    seq: int
    sum: str
    version: int
    state: bytes
    size: int


class _About(msgspec.Struct, frozen=True):
    run: str
    seq: int
    sum: str
    version: int


Read = Callable[[bytes], Snapshot | None]
_STATE: Final = b',"state":'
_about = msgspec.json.Decoder(_About)
_value = msgspec.json.Decoder(msgspec.Raw)


def encode(run: str, seq: int, total: str, version: int, state: bytes) -> bytes:
    """Make a snapshot's bytes. Raises `NotStorable` when they do not read back as they were given."""
    text = _begin(run, seq, total, version) + state
    data = text + _end(digest(text))
    if len(data) > MAX_SIZE:
        raise NotStorable(run, f"a snapshot of {len(data)} bytes, the limit is {MAX_SIZE}")
    if decode(data) != Snapshot(run, seq, total, version, state, len(data)):
        raise NotStorable(run, "its state is not one JSON value that reads back as it was given")
    return data


def decode(data: bytes) -> Snapshot | None:
    """Read a snapshot's bytes; None when they are not exactly one."""
    snapshot = framed(data)
    try:
        if snapshot is None or len(_value.decode(snapshot.state)) != len(snapshot.state):
            return None
    except (msgspec.DecodeError, RecursionError):
        return None
    return snapshot


def framed(data: bytes) -> Snapshot | None:
    """As `decode`, for whoever decodes the state next: whether that is one JSON value is not looked at."""
    if not data.endswith(_end(digest(memoryview(data)[:-_TAIL]))):
        return None
    try:
        if not data.isascii():
            data.decode()
        about = _about.decode(data[: max(data.find(_STATE), 0)] + b"}")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    begin = _begin(about.run, about.seq, about.sum, about.version)
    if not data.startswith(begin):
        return None
    return Snapshot(about.run, about.seq, about.sum, about.version, data[len(begin) : -_TAIL], len(data))


def valid(files: Files, run: str, names: Iterable[str], findings: list[str], read: Read = decode) -> Iterator[Snapshot]:
    """Give a run's snapshots among `names`, newest first; what is wrong with the others becomes findings."""
    numbered = sorted(((seq, name) for name in names if (seq := snapshot_seq(name)) is not None), reverse=True)
    for seq, name in numbered:
        try:
            data = files.content(name, MAX_SIZE)
        except FileNotFoundError:  # a writer at work keeps only the newest
            continue
        except NotAFile:
            findings.append(f"{name} is not a regular file, and was passed over")
            continue
        snapshot = read(data) if 0 < len(data) <= MAX_SIZE else None
        if snapshot is None:
            findings.append(f"{name} is {'unreadable' if data else 'empty'}, and was passed over")
        elif snapshot.run != run:
            findings.append(f"{name} is of run {snapshot.run!r}, and was passed over")
        elif snapshot.seq != seq:
            findings.append(f"{name} is of line {snapshot.seq}, and was passed over")
        else:
            yield snapshot


def is_made_for(snapshot: Snapshot, line: Line) -> bool:
    """Tell whether a line begins the segment that was made for a snapshot: it names the line before, and the state."""
    return line.header is not None and line.prev == snapshot.sum and line.header.snapshot == digest(snapshot.state)


def keep(disk: Disk, directory: Path, seq: int, data: bytes, lock: Lock) -> None:
    """Make a snapshot durable under its name; only then remove those before the one before it."""
    disk.close(write_atomically(disk, directory, snapshot_name(seq), [data], lock.check))
    disk.sync_dir(directory)
    known = (found for name in disk.list(directory) if (found := snapshot_seq(name)) is not None and found <= seq)
    for old in sorted(known, reverse=True)[KEPT:]:
        with contextlib.suppress(OSError):  # a cache that stays too long is in nobody's way
            disk.unlink(directory / snapshot_name(old))


def _begin(run: str, seq: int, total: str, version: int) -> bytes:
    return f'{{"run":"{run}","seq":{seq},"sum":"{total}","version":{version},"state":'.encode()


def _end(given: str) -> bytes:
    return f',"check":"{given}"}}\n'.encode()
