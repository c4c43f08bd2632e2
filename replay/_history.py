"""An append-only sequence with the manners of a value.

A state is never changed, yet a run may hold ten thousand messages, and copying them at every event would make a fold
quadratic. `History` shares one list between all states of a line of history and lets each see only its own length;
appending to a state that is not the newest copies, so no state ever sees another's future.
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
        """The history that has `item` at its end; this one stays as it is."""
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
