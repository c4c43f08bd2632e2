"""Crash points: where a simulated process can die, counted for each process.

A point is before, inside or after something that reaches outside the process: a file operation that changes something,
an ask, a tool's body, a lookup, a question. Nothing reaches outside between two file operations in a row, so the point
after the first and the point before the second are one. After the chosen point everything raises `Killed`, in every
`finally` too: a dead process does nothing.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from eventlog.simdisk import Killed

_OUTSIDE = ("model", "tool", "lookup", "question")


class CrashPoints:
    """The points of one process, numbered from 0; `passed` are their names.

    At the point `dies` the process dies, at the point `happens` the event is called; None for nowhere.
    """

    def __init__(
        self, dies: int | None = None, happens: int | None = None, event: Callable[[], object] | None = None
    ) -> None:
        self.passed: list[str] = []
        self.dead = False
        self._dies, self._happens, self._event = dies, happens, event
        self._after_file = False

    def alive(self) -> None:
        if self.dead:
            raise Killed

    @property
    def dies_next(self) -> bool:
        """Whether the process dies at the next point: then half of the operation before it may be done."""
        return len(self.passed) == self._dies

    def at(self, name: str) -> None:
        self.alive()
        self._after_file = False
        self.dead = self.dies_next
        self.passed.append(name)
        if self._event is not None and len(self.passed) - 1 == self._happens:
            self._event()
        self.alive()

    @contextlib.contextmanager
    def around(self, what: str) -> Iterator[Callable[[], None]]:
        """A point before the block, and one after it unless it raises; gives what passes one inside."""
        self.at(f"{what}, before")
        yield lambda: self.at(f"{what}, inside")
        self.at(f"{what}, after")

    def before_file_operation(self, name: str) -> None:
        """Pass the point before a file operation, unless another one has just ended."""
        self.alive()
        if not self._after_file:
            self.at(f"{name}, before")

    def after_file_operation(self, name: str) -> None:
        self.at(f"{name}, after")
        self._after_file = True


def is_outside(points: Sequence[str], at: int) -> bool:
    """Whether a point is before, inside or after an ask, a tool, a lookup or a question: no file operation."""
    return points[at].startswith(_OUTSIDE)


def is_begun(points: Sequence[str], at: int) -> bool:
    """Whether the run exists at a point: something outside was reached."""
    return bool(_outside(points[: at + 1]))


def _outside(points: Sequence[str]) -> str:
    """The first of these points that is no file operation."""
    return next((point for point in points if point.startswith(_OUTSIDE)), "")


def may_lose_a_reply(points: Sequence[str], at: int) -> bool:
    """Whether a death at a point may lose a reply: the last thing that was no file operation is the model's end."""
    last = _outside(points[at::-1])
    return last.startswith("model") and last.endswith("after")


def may_leave_in_doubt(points: Sequence[str], at: int) -> bool:
    """Whether a death at a point may leave a call in doubt: a tool is about to begin, or came last."""
    return _outside(points[at::-1]).startswith("tool") or _outside(points[at:]).startswith("tool")
