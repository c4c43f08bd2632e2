"""The names on the disk: which are certain, and which changes of names a power cut may keep.

Until its directory is synced, each change is kept or lost by itself, a rename's two halves too (the new name comes into
being whole, with the old file or the new one after it). A sync of a file promises no name. This is what POSIX allows,
and what a file system with a journal leaves is among it.

A failed sync of a directory leaves its changes as they were: possible, and made durable by the next sync that returns.
"""

import random
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final

from eventlog.simdisk._trace import Change

Names = dict[int, dict[str, int]]
_FEW: Final = 6


class Directories:
    """Every directory's names, the durable ones and the changes that are not durable yet."""

    def __init__(self, names: Names) -> None:
        self._sure = _copied(names)
        self._pending: list[Change] = []

    def change(self, changes: Iterable[Change], made: int | None = None) -> None:
        """Take a step that changed names; `made` is the number of a directory that it made."""
        self._pending += changes
        if made is not None:
            self._sure[made] = {}

    def synced(self, directory: int) -> None:
        """Take a sync of a directory that returned."""
        _apply(self._sure, (change for change in self._pending if change.directory == directory))
        self._pending = [change for change in self._pending if change.directory != directory]

    def choices(self, rng: random.Random, limit: int) -> Iterator[Names]:
        """Give the names that a cut may leave: all of them, or `limit` drawn ones where there are too many."""
        for picks in _subsets(len(self._pending), rng, limit):
            found = _copied(self._sure)
            _apply(found, (change for change, kept in zip(self._pending, picks, strict=True) if kept))
            yield found


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
