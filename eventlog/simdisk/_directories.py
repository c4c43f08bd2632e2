"""The names on the disk: which are certain, and which changes of names a power cut may keep.

Two models. `posix`: until its directory is synced, each change is kept or lost by itself, a rename's two halves, too
(the new name comes into being whole, with the old file or the new one after it); a sync of a file promises no name.
`ext4`: changes happen in one order for the whole file system, so a cut keeps the first so many of them, and whatever
commits one commits all before it: a sync of a directory, or of a file that is new or whose size changed. What it leaves
is among what POSIX allows, where it would seldom be drawn.

A failed sync of a directory leaves its changes as they were: possible, and made durable by the next sync that returns.
"""

import random
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Final, Literal

from eventlog.simdisk._trace import Change

Model = Literal["posix", "ext4"]
Names = dict[int, dict[str, int]]
_FEW: Final = 6


class Directories:
    """Every directory's names, the durable ones and the changes that are not durable yet, on POSIX."""

    def __init__(self, names: Names) -> None:
        self._sure = _copied(names)
        self._pending: list[tuple[Change, ...]] = []

    def change(self, changes: tuple[Change, ...], made: int | None = None) -> None:
        """Take a step that changed names; `made` is the number of a directory that it made."""
        self._pending.append(changes)
        if made is not None:
            self._sure[made] = {}

    def synced(self, number: int, *, resized: bool) -> None:  # noqa: ARG002 (it is ext4's)
        """Take a sync that returned: of a directory, or of a file, whose size may have changed."""
        changes = list(chain.from_iterable(self._pending))
        _apply(self._sure, (change for change in changes if change.directory == number))
        self._pending = [(change,) for change in changes if change.directory != number]

    def choices(self, rng: random.Random, limit: int) -> Iterator[Names]:
        """Give the names that a cut may leave: all of them, or `limit` drawn ones where there are too many."""
        changes = list(chain.from_iterable(self._pending))
        for picks in _subsets(len(changes), rng, limit):
            yield self._with(change for change, kept in zip(changes, picks, strict=True) if kept)

    def _with(self, changes: Iterable[Change]) -> Names:
        found = _copied(self._sure)
        _apply(found, changes)
        return found


class Journal(Directories):
    """The same on ext4."""

    def synced(self, number: int, *, resized: bool) -> None:
        new = any(len(step) == 1 and step[0].file == number for step in self._pending) and number not in self._sure
        within = any(change.directory == number for change in chain.from_iterable(self._pending))
        if resized or new or within:
            _apply(self._sure, chain.from_iterable(self._pending))
            self._pending.clear()

    def choices(self, rng: random.Random, limit: int) -> Iterator[Names]:  # noqa: ARG002 (they are few)
        for kept in range(len(self._pending) + 1):
            yield self._with(chain.from_iterable(self._pending[:kept]))


MODELS: Final[dict[Model, type[Directories]]] = {"posix": Directories, "ext4": Journal}


def _copied(names: Names) -> Names:
    return {directory: dict(found) for directory, found in names.items()}


def _apply(names: Names, changes: Iterable[Change]) -> None:
    for change in changes:
        if change.file is None:
            names[change.directory].pop(change.name, None)
        else:
            names[change.directory][change.name] = change.file


def _subsets(size: int, rng: random.Random, limit: int) -> Iterator[tuple[bool, ...]]:
    """Give every subset while there are few; else the first so many, each alone, all but one, then drawn ones."""
    if size <= _FEW:
        yield from product((False, True), repeat=size)
        return
    for mark in range(size + 1):
        yield tuple(index < mark for index in range(size))
    for odd in range(size):
        yield tuple(index == odd for index in range(size))
        yield tuple(index != odd for index in range(size))
    for _ in range(limit):
        yield tuple(rng.random() < 0.5 for _ in range(size))  # noqa: PLR2004 - a fair coin
