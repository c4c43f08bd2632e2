"""An append-only sequence that behaves like a value.

A state never changes, yet a run may hold ten thousand messages, and copying them at every event would make a fold
quadratic. So the states of one history share one list, and each sees only its own length. Appending to an older state
copies the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class History(Sequence[T]):
    """An immutable sequence whose `append` returns a longer one in constant time (amortised)."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def append(self, item: T) -> History[T]:
        """Returns this history with `item` at its end; this one stays as it is."""
        longer: History[T] = History.__new__(History)
        longer._items = self._items if len(self._items) == self._length else self._items[: self._length]
        longer._items.append(item)
        longer._length = self._length + 1
        return longer

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
