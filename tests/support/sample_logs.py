"""Logs of every kind as bytes, made once through the public face, and laid out again as often as a test wants."""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path

import eventlog
from tests.eventlog.making import AT, OPENING, event, files
from tests.support.disks import Quick
from tests.support.file_logs import roll

KINDS = ("short", "live", "lives", "rolled", "compacted", "dead after a roll", "header alone")
STATE = b'{"count":%d,"text":"a state"}'


@functools.cache
def log(kind: str) -> dict[str, bytes]:
    """Give the files of a log of this kind, named `r`."""
    with tempfile.TemporaryDirectory() as place:
        _make(kind, Path(place))
        return {name: data for name, data in files(Path(place) / "r").items() if name != "lock"}


def lay(directory: Path, content: dict[str, bytes]) -> Path:
    """Have a run's directory hold exactly these files; return the directory of runs."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        if path.name not in content:
            path.unlink()
    for name, data in content.items():
        (directory / name).write_bytes(data)
    return directory.parent


def broken(content: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Break a log in one to three of the ways that a disk, a hand or another program would."""
    content = dict(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(content) or ["head"])
        data = content.get(name, b"")
        at = rng.randrange(len(data.rstrip(b"\0")) + 1) if data else 0
        lines = data.rstrip(b"\0").splitlines(keepends=True) or [b""]
        one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        swapped = [lines[other] if n == one else lines[one] if n == other else line for n, line in enumerate(lines)]
        changed = rng.choice(
            [
                data[:at],
                data[:at] + bytes(rng.choice((1, 511, 4096))),
                data[:at] + bytes(min(70, len(data) - at)) + data[at + 70 :],
                data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if at < len(data) else data,
                data[:at] + b"\n" + data[at:],
                data + lines[one],
                data + b"\0" * 40 + lines[one],
                b"".join(lines[:one] + lines[one + 1 :]),
                b"".join(swapped),
                data + b"x",
                b"",
            ]
        )
        content[name] = changed
        if rng.random() < 0.15:
            content.pop(name)
        elif rng.random() < 0.1:
            content["head"] = log("short")["head"]
        elif rng.random() < 0.05:
            content["seg-000002.jsonl"] = data
    return content


def compacted(runs: Path, *, times: int = 3, end: str = "close", disk: eventlog.Disk | None = None) -> None:
    """Make a log `r` that was compacted so many times, with two lines behind each."""
    made = eventlog.Directory(runs, disk=disk or Quick()).create("r", at=AT, events=[OPENING])
    for time in range(times):
        made.append(AT, [event(time)])
        made.compact(STATE % time, 1)
        made.append(AT, [event(100 + time, 30)])
    getattr(made, end)()


def _make(kind: str, runs: Path) -> None:
    if kind in {"compacted", "dead after a roll"}:
        compacted(runs, end="close" if kind == "compacted" else "abandon")
        return
    made = eventlog.Directory(runs, disk=Quick()).create("r", at=AT, events=[] if kind == "header alone" else [OPENING])
    for number in range(0 if kind == "header alone" else 3):
        made.append(AT, [event(number, 20)])
        if kind == "rolled":
            roll(made)
    if kind == "live":
        made.abandon()
        return
    made.close()
    if kind == "lives":
        for number in range(2):
            with eventlog.Directory(runs, disk=Quick()).open("r") as again:
                again.append(AT, [event(10 + number), event(20)])
