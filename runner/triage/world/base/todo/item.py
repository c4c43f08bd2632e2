"""One thing to do."""

from dataclasses import dataclass
from datetime import date


@dataclass
class Item:
    """An item keeps its number for life; numbers are never used twice."""

    number: int
    text: str
    due: date | None = None
    done: bool = False

    def to_json(self) -> dict:
        return {
            "number": self.number,
            "text": self.text,
            "due": self.due.isoformat() if self.due else None,
            "done": self.done,
        }

    @classmethod
    def from_json(cls, data: dict) -> "Item":
        due = data.get("due")
        return cls(
            number=int(data["number"]),
            text=str(data["text"]),
            due=date.fromisoformat(due) if due else None,
            done=bool(data.get("done", False)),
        )

    def __str__(self) -> str:
        mark = "x" if self.done else " "
        due = f" (due {self.due.isoformat()})" if self.due else ""
        return f"{self.number:>3} [{mark}] {self.text}{due}"
