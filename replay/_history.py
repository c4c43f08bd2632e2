"""A sequence that grows, whose copies behave like values.

A state never changes, yet a run may hold ten thousand messages, and copying them at every fold would make a run
quadratic. So the copies of a history share one list, and each sees only its own length. One that is not the longest
copies the list when it grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class History(Sequence[T]):
    """A sequence that is copied, and grows by one item, in constant time (amortised)."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def copy(self) -> History[T]:
        """Returns a history of the same items that may grow by itself."""
        copied: History[T] = History.__new__(History)
        copied._items, copied._length = self._items, self._length
        return copied

    def grow(self, item: T) -> None:
        """Adds `item` to this very history: only for whoever made it, before anybody else has it."""
        items = self._items
        if len(items) != self._length:
            items = self._items = items[: self._length]
        items.append(item)
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            seen = self._items if len(self._items) == self._length else self._items[: self._length]
            return tuple(seen[index])
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._items[index if index >= 0 else self._length + index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return f"History({list(self[:])!r})"
