"""Power cuts: from a record of operations to the images that a cut after each of them may leave.

A cut may come before a sync returns, so the bytes of every operation since the last sync that returned are in question
(`_sectors`, `_directories`). All combinations are taken while there are few. Where there are many, a bounded number:
all of the oldest, all of the newest, each uncertain sector alone the newest and alone the oldest, then combinations
drawn from `seed`, so that a sweep repeats exactly. The content of `disposable` files is drawn and not enumerated.

A failure can be examined only while its image is there: `keep` writes the image to a real directory, with a report of
what failed, where the power went and how to repeat it.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Final, NamedTuple

from eventlog.simdisk._directories import Directories, Model, Names
from eventlog.simdisk._image import EMPTY, Image, disposable
from eventlog.simdisk._sectors import Sectors
from eventlog.simdisk._trace import ROOT, DirectorySynced, Named, Op, Sized, Synced, SyncFailed, Wrote, says

LIMIT: Final = 64
"""Images of one cut, unless told otherwise."""


class Cut(NamedTuple):
    """One image, and after how many operations of the record the power went."""

    after: int
    image: Image


class Platter:
    """What one disk may hold, as operations go on."""

    def __init__(self, model: Model, image: Image = EMPTY) -> None:
        self._surfaces = {number: Sectors(content) for number, content in image.files.items()}
        self._directories = Directories(model, image.directories)

    def apply(self, op: Op) -> None:
        match op:
            case Wrote(file=file, offset=offset, data=data):
                self._surfaces[file].write(offset, data)
            case Sized(file=file, size=size):
                self._surfaces[file].resize(size)
            case Synced(file=file):
                resized = self._surfaces[file].size_is_dirty
                self._surfaces[file].sync()
                self._directories.file_synced(file, resized=resized)
            case SyncFailed(file=file, pages=pages):
                self._surfaces[file].sync_failed(pages)
            case Named(changes=changes, made=made):
                new = changes[0].file if made else None
                if made == "file" and new is not None:
                    self._surfaces[new] = Sectors()
                self._directories.change(changes, new, directory=made == "directory")
            case DirectorySynced(directory=directory):
                self._directories.synced(directory)

    def images(self, rng: random.Random, limit: int) -> Iterator[Image]:
        """Give images that a power cut may leave now; some may be the same."""
        trees = [_Tree(names) for names in self._directories.choices(rng, limit)]
        share = max(4, limit // len(trees))
        for tree in trees:
            loud = [number for number, name in tree.files.items() if not disposable(name)]
            drawn = {number: self._drawn(number, rng) for number in tree.files if number not in loud}
            for contents in self._contents(loud, rng, share):
                yield Image(tree.directories, drawn | contents)

    def _contents(self, files: list[int], rng: random.Random, limit: int) -> Iterator[dict[int, bytes]]:
        sizes = [self._surfaces[file].sizes() for file in files]
        sectors = [self._surfaces[file].uncertain() for file in files]
        axes = [len(found) for found in sizes] + [len(found) for file in sectors for found in file.values()]
        for picks in _picks(axes, rng, limit):
            rest = iter(picks[len(files) :])
            yield {
                file: self._surfaces[file].content(
                    sizes[at][picks[at]], {sector: found[next(rest)] for sector, found in sectors[at].items()}
                )
                for at, file in enumerate(files)
            }

    def _drawn(self, file: int, rng: random.Random) -> bytes:
        surface = self._surfaces[file]
        chosen = {sector: rng.choice(found) for sector, found in surface.uncertain().items()}
        return surface.content(rng.choice(surface.sizes()), chosen)


class _Tree:
    """The directories and files that can be reached from `/`."""

    def __init__(self, names: Names) -> None:
        self.directories: dict[int, dict[str, int]] = {}
        self.files: dict[int, str] = {}
        self._take(ROOT, names)

    def _take(self, directory: int, names: Names) -> None:
        self.directories[directory] = names[directory]
        for name, number in names[directory].items():
            if number in names:
                self._take(number, names)
            else:
                self.files[number] = min(name, self.files.get(number, name), key=disposable)


def cuts(
    trace: Sequence[Op],
    model: Model,
    *,
    start: Image = EMPTY,
    first: int = 0,
    limit: int = LIMIT,
    seed: int = 0,
) -> Iterator[Cut]:
    """Give the images that a power cut may leave after each operation of a record, from operation `first` on.

    `start` is the image that the record began on. About `limit` images of each cut at most; equal ones are given
    once a cut. The same arguments give the same images in the same order.
    """
    platter = Platter(model, start)
    for after in range(len(trace) + 1):
        if after:
            platter.apply(trace[after - 1])
        if after < first:
            continue
        seen: set[bytes] = set()
        rng = random.Random(f"{seed}:{after}")  # noqa: S311 - it picks examples; it protects nothing
        for image in platter.images(rng, limit):
            if (key := image.key) not in seen:
                seen.add(key)
                yield Cut(after, image)


def _picks(axes: list[int], rng: random.Random, limit: int) -> Iterator[tuple[int, ...]]:
    """Give combinations of one index for each axis: all while there are at most `limit`, else the corners and drawn."""
    if prod(axes) <= limit:
        yield from product(*map(range, axes))
        return
    old, new = tuple(0 for _ in axes), tuple(size - 1 for size in axes)
    given = 2
    yield old
    yield new
    odd = list(range(len(axes)))
    rng.shuffle(odd)
    for axis in odd[: limit // 4]:
        yield tuple(new[at] if at == axis else old[at] for at in range(len(axes)))
        yield tuple(old[at] if at == axis else new[at] for at in range(len(axes)))
        given += 2
    for _ in range(given, limit):
        yield tuple(rng.randrange(size) for size in axes)


_BEFORE = 12


def keep(cut: Cut, place: Path, *, why: str, trace: Sequence[Op], repeat: str) -> Path:
    """Write a cut's image into a new directory under `place` and give that directory; `REPORT` in it explains it.

    `why` says what was wrong, `trace` is the record it was cut from, `repeat` the command that finds it again. The
    image's tree is in `disk/`, so that `refold verify --runs <it>/disk/<runs> RUN` reads it like any other.
    """
    directory = place / cut.image.key.hex()
    cut.image.write_to(directory / "disk")
    report = f"{why}\n\nrepeat: {repeat}\n\nThe power went after operation {cut.after} of {len(trace)}:\n"
    for number, op in enumerate(trace[: cut.after], start=1):
        if number > cut.after - _BEFORE:
            report += f"{number:5} {says(op)}\n"
    (directory / "REPORT").write_text(report, encoding="utf-8")
    return directory
