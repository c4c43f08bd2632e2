"""The names on the disk: which are certain, and which changes of names a power cut may keep.

Two models. `ext4`: changes of names happen in one order for the whole file system, so a cut keeps the first so many of
them, and whatever commits one commits all before it: a sync of a directory, or of a file that is new or whose size
changed. `posix`: until its directory is synced, each change is kept or lost by itself, a rename's two halves too (the
new name comes into being whole, with the old file or the new one after it); a sync of a file promises no name.

A failed sync of a directory leaves its changes as they were: possible, and made durable by the next sync that returns.
"""

import random
from collections.abc import Iterator
from itertools import chain, product
from typing import Final, Literal

from eventlog.simdisk._trace import Change

Model = Literal["ext4", "posix"]
Names = dict[int, dict[str, int]]
_FEW: Final = 6


class Directories:
    """Every directory's names, the durable ones and the changes that are not durable yet."""

    def __init__(self, model: Model, names: Names) -> None:
        self._model: Model = model
        self._sure = {directory: dict(found) for directory, found in names.items()}
        self._pending: list[tuple[Change, ...]] = []
        self._fresh: set[int] = set()

    def change(self, changes: tuple[Change, ...], new: int | None, *, directory: bool) -> None:
        """Take a step that changed names; `new` is the number of a file or directory that it made."""
        self._pending.append(changes)
        if new is not None:
            self._fresh.add(new)
            if directory:
                self._sure[new] = {}

    def file_synced(self, file: int, *, resized: bool) -> None:
        """Take a sync of a file: on ext4 it commits every name so far if the file is new or its size changed."""
        if self._model == "ext4" and (resized or file in self._fresh):
            self._commit_all()

    def synced(self, directory: int) -> None:
        """Take a sync of a directory that returned."""
        if self._model == "ext4":
            if any(change.directory == directory for change in chain.from_iterable(self._pending)):
                self._commit_all()
            return
        _apply(self._sure, (change for change in chain.from_iterable(self._pending) if change.directory == directory))
        left = (tuple(change for change in step if change.directory != directory) for step in self._pending)
        self._pending = [step for step in left if step]

    def choices(self, rng: random.Random, limit: int) -> Iterator[Names]:
        """Give the names that a cut may leave: all of them, or `limit` drawn ones where there are too many."""
        if self._model == "ext4":
            for kept in range(len(self._pending) + 1):
                yield self._with(chain.from_iterable(self._pending[:kept]))
            return
        atoms = list(chain.from_iterable(self._pending))
        for picks in _subsets(len(atoms), rng, limit):
            yield self._with(atom for atom, kept in zip(atoms, picks, strict=True) if kept)

    def _commit_all(self) -> None:
        _apply(self._sure, chain.from_iterable(self._pending))
        self._pending.clear()
        self._fresh.clear()

    def _with(self, changes: Iterator[Change]) -> Names:
        found = {directory: dict(names) for directory, names in self._sure.items()}
        _apply(found, changes)
        return found


def _apply(names: Names, changes: Iterator[Change]) -> None:
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
