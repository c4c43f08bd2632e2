"""Power cuts: from a record of operations to the images that a cut after each of them may leave.

A cut may come before a sync returns, so the bytes of every operation since the last sync that returned are in question
(`_sectors`, `_directories`). All combinations are taken while there are few. Where there are many, a bounded number:
all of the oldest, all of the newest, each uncertain sector alone the newest and alone the oldest, then combinations
drawn from `seed`, so that a sweep repeats exactly. The content of `disposable` files is drawn and not enumerated.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from eventlog.simdisk._directories import MODELS, Model, Names
from eventlog.simdisk._image import EMPTY, Image, disposable
from eventlog.simdisk._sectors import Sectors
from eventlog.simdisk._trace import ROOT, Named, Op, Sized, Synced, Wrote

LIMIT: Final = 64
"""Images of one cut, unless told otherwise."""


class Cut(NamedTuple):
    """One image, and after how many operations of the record the power went."""

    after: int
    image: Image


class Platter:
    """What one disk may hold, as operations go on."""

    def __init__(self, model: Model, image: Image) -> None:
        self._surfaces = defaultdict(Sectors, {number: Sectors(data) for number, data in image.files.items()})
        self._directories = MODELS[model](image.directories)

    def apply(self, op: Op) -> None:
        match op:
            case Wrote(file=file, offset=offset, data=data):
                self._surfaces[file].write(offset, data)
            case Sized(file=file, size=size):
                self._surfaces[file].resize(size)
            case Synced(number=number):
                resized = len(self._surfaces[number].sizes()) > 1
                self._surfaces[number].sync()
                self._directories.synced(number, resized=resized)
            case Named(changes=changes, directory=made):
                self._directories.change(changes, made)

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
    model: Model = "posix",
    *,
    start: Image = EMPTY,
    first: int = 0,
    limit: int = LIMIT,
    seed: int = 0,
) -> Iterator[Cut]:
    """Give the images that a power cut may leave after each operation of a record, from operation `first` on.

    `model` says what the disk may do with names, `start` is the image that the record began on. About `limit` images
    of each cut at most; equal ones are given once a cut. The same arguments give the same images in the same order.
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
