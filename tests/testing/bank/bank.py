"""The bank itself: the outside system that an agent acts on. It knows nothing of agents, runs or crashes.

A transfer comes under a key; one that the bank remembers makes no second transfer, and answers as the first time.
Letters go out as often as they are sent; each has a reference that they can be found by. The books are a file, so that
any process may open the bank.
"""

import json
from pathlib import Path
from typing import Any


class Bank:
    """A bank whose books are in `folder`. One that is `forgetful` remembers no keys."""

    def __init__(self, folder: Path, *, forgetful: bool = False) -> None:
        self._books = folder / "books.jsonl"
        self._books.touch()
        self._forgetful = forgetful

    def transfer(self, payee: str, cents: int, key: str) -> int:
        """Transfer money; the transfer's number."""
        known = [entry["number"] for entry in self.transfers() if entry["key"] == key]
        if known and not self._forgetful:
            return int(known[0])
        number = len(self.transfers()) + 1
        self._enter({"kind": "transfer", "number": number, "key": key, "payee": payee, "cents": cents})
        return number

    def send(self, addressee: str, text: str, reference: str) -> None:
        """Send a letter."""
        self._enter({"kind": "letter", "reference": reference, "addressee": addressee, "text": text})

    def was_sent(self, reference: str) -> bool:
        """Whether a letter with this reference went out."""
        return any(letter["reference"] == reference for letter in self.letters())

    def transfers(self) -> list[dict[str, Any]]:
        """All transfers, in their order."""
        return self._entries("transfer")

    def letters(self) -> list[dict[str, Any]]:
        """All letters, in their order."""
        return self._entries("letter")

    def effects(self) -> dict[str, int]:
        """How many of each there are."""
        return {"transfers": len(self.transfers()), "letters": len(self.letters())}

    def _enter(self, entry: dict[str, Any]) -> None:
        with self._books.open("a", encoding="utf-8") as books:
            books.write(json.dumps(entry) + "\n")

    def _entries(self, kind: str) -> list[dict[str, Any]]:
        entries = [json.loads(line) for line in self._books.read_text(encoding="utf-8").splitlines()]
        return [entry for entry in entries if entry["kind"] == kind]
