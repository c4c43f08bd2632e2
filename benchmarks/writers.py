"""The arms: refold's own append, and a snapshot writer done right with three serialisers.

Both save the same events. The snapshot holds the whole history each time, as a runner must that keeps its state in one
file; it is written to a temporary file, synced, renamed, and the directory synced, because with less than that a power
cut can leave neither the old nor the new one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import eventlog
import replay
from benchmarks import history
from benchmarks.arms import Save

Events = Sequence[Sequence[replay.Event]]


@contextlib.contextmanager
def append(events: Events, path: Path) -> Iterator[Save]:
    """refold: encode the events, save them as one line."""
    first = [replay.encode(event) for event in history.opening()]
    with eventlog.store(path).create("r", at=datetime.now(UTC), events=first) as log:

        def save(number: int) -> None:
            log.append(datetime.now(UTC), [replay.encode(event) for event in events[number]])

        yield save


def dumped(items: Any) -> bytes:
    """The standard library's JSON, without spaces."""
    return json.dumps(items, separators=(",", ":"), ensure_ascii=False).encode()


SERIALISERS: dict[str, Callable[[Any], bytes]] = {
    "snapshot, json": dumped,
    "snapshot, msgspec JSON": msgspec.json.encode,
    "snapshot, msgspec msgpack": msgspec.msgpack.encode,
}


@contextlib.contextmanager
def snapshot(serialise: Callable[[Any], bytes], events: Events, path: Path) -> Iterator[Save]:
    """All that happened so far, in a new file, each time."""
    whole: list[Any] = [msgspec.to_builtins(event) for event in history.opening()]
    done = 0

    def save(number: int) -> None:
        nonlocal done
        for line in events[done : number + 1]:  # those between two sampled saves only join the history
            whole.extend(map(msgspec.to_builtins, line))
        done = number + 1
        replace(path, serialise(whole))

    yield save


def replace(path: Path, data: bytes) -> None:
    """Put `data` in the place of the snapshot, so that a power cut leaves the old or the new one."""
    temporary = path / "state.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, path / "state")
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
