"""How near is a save to what the disk allows: the same bytes by a C program, by bare Python, by refold.

The limit is one `pwrite` and one `fdatasync` over zeros that are laid and synced: it changes no size and needs no
journal. "Plain append", which grows the file, is what most logs do. Every arm saves lines of the same size in turns;
the zeros of refold's arm are laid as it goes, and are part of its saves. Beside it stands Python's own part: the same
saves where a flush costs nothing.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import eventlog
import replay
from benchmarks import arms, history, table, writers
from benchmarks.arms import Save, Timed, us

SAVES = 400
MEMORY = Path("/dev/shm")  # noqa: S108 (a file system without a disk is what is wanted here)


def compiled(place: Path) -> Path | None:
    """The C program, or None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = place / "limit"
    subprocess.run([compiler, "-O2", "-o", str(program), str(arms.ROOT / "limit.c")], check=True)  # noqa: S603 (our own program)
    return program


def in_c(program: Path, path: Path, sizes: Sequence[int]) -> list[float]:
    """The seconds of each save of the C program."""
    size = round(statistics.mean(sizes))
    command = [str(program), str(path / "file"), str(len(sizes)), str(size)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (as above)
    return [int(line) / 1e9 for line in out.split()]


@contextlib.contextmanager
def bare(lines: Sequence[bytes], path: Path, *, ahead: bool) -> Iterator[Save]:
    """`pwrite` and `fdatasync` of lines that are ready, over zeros or at the end of the file."""
    fd = os.open(path / "file", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    if ahead:
        os.pwrite(fd, bytes(sum(map(len, lines))), 0)
        os.fsync(fd)
    at = 0

    def save(number: int) -> None:
        nonlocal at
        at += os.pwrite(fd, lines[number], at)
        os.fdatasync(fd)

    try:
        yield save
    finally:
        os.close(fd)


def made_lines(events: writers.Events) -> list[bytes]:
    """The very lines that refold writes."""
    with tempfile.TemporaryDirectory() as place:
        with eventlog.store(place).create("r", at=datetime.now(UTC), events=[b"{}"]) as log:
            for line in events:
                log.append(datetime.now(UTC), [replay.encode(event) for event in line])
        return (Path(place) / "r" / "seg-000001.jsonl").read_bytes().splitlines(keepends=True)[2:]


def python_part(events: writers.Events, count: int) -> float | None:
    """Seconds of a save, all of it, where a flush costs nothing: the lowest p50 of the rounds, for load only adds."""
    if not MEMORY.is_dir():
        return None
    found = []
    for _ in range(count):
        place = Path(tempfile.mkdtemp(dir=MEMORY))
        try:
            with writers.append(events, place) as save:
                timed = Timed()
                timed.add([arms.one(save, number) for number in range(len(events))])
                found.append(timed.p50[0])
        finally:
            shutil.rmtree(place)
    return min(found)


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    count = 5 if short else arms.ROUNDS
    events = list(history.saves(SAVES))
    lines = made_lines(events)
    own = ("Python, over zeros", "refold", "Python, plain append")
    loops = {
        "Python, over zeros": functools.partial(bare, lines, ahead=True),
        "refold": functools.partial(writers.append, events),
        "Python, plain append": functools.partial(bare, lines, ahead=False),
    }
    with arms.room() as place:
        program = compiled(place)
        first = own[0] if program is None else "C, over zeros"
        timed = {name: Timed() for name in dict.fromkeys((first, first + arms.AGAIN, *own))}
        for name in arms.turns(timed, count):
            with arms.room() as path:
                if (loop := loops.get(name.removesuffix(arms.AGAIN))) is not None:
                    with loop(path) as save:
                        timed[name].add([arms.one(save, number) for number in range(SAVES)])
                elif program is not None:
                    timed[name].add(in_c(program, path, [len(line) for line in lines]))
    base = next(iter(timed.values()))
    rows = [
        [name, us(arms.middle(t.p50)), us(arms.middle(t.p99)), f"{arms.ratio(t.p50, base.p50):.2f}"]
        for name, t in timed.items()
    ]
    part = python_part(events, count)
    notes = [f"{SAVES} saves of {round(statistics.mean(map(len, lines)))} bytes, {count} rounds"]
    if part is not None:
        notes.append(f"Python's part of a save (on {MEMORY}, all of it, {len(lines)} saves): {part * 1e6:.1f} µs")
    plot = {"x": list(timed), "series": {"p50": [arms.middle(t.p50) * 1e6 for t in timed.values()]}, "ylabel": "µs"}
    head = ["arm", "p50 µs", "p99 µs", "times the first"]
    table.report("limit", "How near is a save to the disk's limit?", head, rows, notes=notes, plot=plot, short=short)


if __name__ == "__main__":
    main()
