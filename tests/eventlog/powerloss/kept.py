"""An image that violates something, kept in a directory to be looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from eventlog.simdisk import Image, Named, Op, Sized, Synced, Wrote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eventlog.simdisk import Cut

Directories = dict[int, dict[str, int]]
BEFORE = 12
"""Operations before the cut that a report tells of."""


def keep(cut: Cut, place: Path, *, why: str, trace: Sequence[Op], repeat: str) -> Path:
    """Write a cut's image into a new directory under `place` and give that directory; `REPORT` in it explains it.

    `why` says what was wrong, `trace` is the record it was cut from, `repeat` the command that finds it again. The
    image's tree is in `disk/`, so that `refold verify --runs <it>/disk/<runs> RUN` reads it like any other.
    """
    directory = place / cut.image.key.hex()
    write(cut.image, directory / "disk")
    report = f"{why}\n\nrepeat: {repeat}\n\nThe power went after operation {cut.after} of {len(trace)}:\n"
    for number, op in enumerate(trace[: cut.after], start=1):
        if number > cut.after - BEFORE:
            report += f"{number:5} {says(op, cut.image.directories)}\n"
    (directory / "REPORT").write_text(report, encoding="utf-8")
    return directory


def write(image: Image, place: Path) -> None:
    """Make an image's tree in a real directory, which is made when missing."""
    place.mkdir(parents=True, exist_ok=True)
    first: dict[int, Path] = {}
    for path, number in image.walk():
        target = place / path.lstrip("/")
        if number in image.directories:
            target.mkdir(exist_ok=True)
        elif number in first:
            os.link(first[number], target)
        else:
            target.write_bytes(image.files[number])
            first[number] = target


def says(op: Op, directories: Directories) -> str:
    """Word an operation; a file that has a name in the directories is told by its path."""
    paths = {number: path for path, number in Image(directories, {}).walk()}
    match op:
        case Wrote():
            return f"wrote {len(op.data)} bytes at {op.offset} of {paths.get(op.file, op.file)}"
        case Sized():
            return f"set the size to {op.size} of {paths.get(op.file, op.file)}"
        case Synced():
            return f"synced {paths.get(op.number, op.number)}"
        case Named():
            done = "renamed a file to" if len(op.changes) > 1 else "made" if op.changes[0].file else "removed"
            return f"{done} {op.changes[0].name}"
