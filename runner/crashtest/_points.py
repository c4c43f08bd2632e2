"""Points: where the death of a simulated process can land, counted one life at a time.

A point lies before, inside or after something that reaches the outside: a file operation that changes something, an
ask, a tool's body, a lookup, a question. Between two file operations in a row nothing reaches the outside, so the end
of the one is the beginning of the other and counts once. Past the chosen point everything raises `Killed`, whoever
asks and from whichever `finally`: a dead process does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.crashtest._faults import Killed


class Points:
    """The points of one life. `passed` are their names; at the one numbered `dies` (from 0) the process dies."""

    def __init__(self, dies: int | None = None) -> None:
        """Begin a life that dies at a point, or at none."""
        self.passed: list[str] = []
        self.dead = False
        self._dies = dies
        self._behind_a_file = False

    def alive(self) -> None:
        """Raise `Killed` in a dead process."""
        if self.dead:
            raise Killed

    @property
    def dies_next(self) -> bool:
        """Whether the next point is where this life ends: then a half of what comes before it may be done."""
        return len(self.passed) == self._dies

    def at(self, name: str) -> None:
        """Pass a point, or die there."""
        self.alive()
        self._behind_a_file = False
        self.dead = self.dies_next
        self.passed.append(name)
        self.alive()

    def before_a_file(self, name: str) -> None:
        """Pass the point before a file operation, unless another one has just ended."""
        self.alive()
        if not self._behind_a_file:
            self.at(f"{name}, before")

    def behind_a_file(self, name: str) -> None:
        """Pass the point after a file operation."""
        self.at(f"{name}, after")
        self._behind_a_file = True


def anywhere(_points: Sequence[str], _at: int) -> bool:
    """A death concerns most modes wherever it falls."""
    return True


def _outside(points: Sequence[str]) -> str:
    """The first of these points that is no file operation."""
    return next((point for point in points if point.startswith(("model", "tool", "lookup", "question"))), "")


def may_lose_a_reply(points: Sequence[str], at: int) -> bool:
    """Whether a death at a point may lose a reply: the last thing that was no file operation is the model's end."""
    last = _outside(points[at::-1])
    return last.startswith("model") and last.endswith("after")


def may_leave_open(points: Sequence[str], at: int) -> bool:
    """Whether a death at a point may leave a call open: a tool is about to begin, or was what came last."""
    return _outside(points[at::-1]).startswith("tool") or _outside(points[at:]).startswith("tool")
