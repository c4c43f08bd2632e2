"""The items in their order, found by number."""

from collections.abc import Iterable, Iterator

from todo.item import Item


class NoSuchItem(LookupError):
    """There is no item with that number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no item {number}")
        self.number = number


class Store:
    """A list of items and, so that a long list stays fast, where each number is in it."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._items = list(items)
        self._positions: dict[int, int] = {}
        self._reindex()
        self._last = max((item.number for item in self._items), default=0)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def last(self) -> int:
        """The highest number ever given."""
        return self._last

    @last.setter
    def last(self, number: int) -> None:
        self._last = max(self._last, number)

    def add(self, item: Item) -> None:
        self._positions[item.number] = len(self._items)
        self._items.append(item)
        self.last = item.number

    def get(self, number: int) -> Item:
        return self._items[self._position(number)]

    def mark_done(self, number: int) -> Item:
        item = self._items[self._position(number)]
        item.done = True
        return item

    def rename(self, number: int, text: str) -> Item:
        item = self._items[self._position(number)]
        item.text = text
        return item

    def delete(self, number: int) -> Item:
        item = self._items.pop(self._position(number))
        del self._positions[number]
        return item

    def _position(self, number: int) -> int:
        try:
            return self._positions[number]
        except KeyError:
            raise NoSuchItem(number) from None

    def _reindex(self) -> None:
        self._positions = {item.number: place for place, item in enumerate(self._items)}
