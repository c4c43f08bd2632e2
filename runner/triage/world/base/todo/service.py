"""What one can do with a list."""

from datetime import date
from pathlib import Path

from todo import files
from todo.item import Item


class Service:
    """A list, its rules, and the file it lives in. Nothing reaches the file before `save`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store = files.load(path)

    def add(self, text: str, due: date | None = None) -> Item:
        text = text.strip()
        if not text:
            raise ValueError("an item needs a text")
        item = Item(number=self._store.last + 1, text=text, due=due)
        self._store.add(item)
        return item

    def done(self, number: int) -> Item:
        return self._store.mark_done(number)

    def rename(self, number: int, text: str) -> Item:
        return self._store.rename(number, text)

    def delete(self, number: int) -> Item:
        return self._store.delete(number)

    def find(self, word: str = "") -> list[Item]:
        """The items that contain `word`, whatever its case, in the order they were added."""
        return [item for item in self._store if word.casefold() in item.text.casefold()]

    def next_due(self) -> Item | None:
        """The item to do next: not done, and due first."""
        waiting = [item for item in self._store if not item.done]
        if not waiting:
            return None
        return min(waiting, key=lambda item: item.due)

    def save(self) -> None:
        files.save(self._path, self._store)
