"""The page's time axis: one linear scale for every bar, from the first line that is shown to the last."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

LEAST = 0.4
"""The narrowest bar that can be seen and met by a finger, in percent."""

TICKS = 5


class Bar(NamedTuple):
    """A place on the axis: where it begins and how long it is, in percent of the width."""

    x: str
    w: str


class Axis:
    """The scale that the moments of a history make."""

    def __init__(self, moments: Iterable[datetime]) -> None:
        points = list(moments)
        self._began = min(points, default=None)
        self._seconds = (max(points) - min(points)).total_seconds() if points else 0.0

    def place(self, moment: datetime) -> float:
        """Where a moment lies, in percent; what lies outside stands at the edge."""
        assert self._began is not None
        return 100 * min(max((moment - self._began).total_seconds() / (self._seconds or 1.0), 0.0), 1.0)

    def bar(self, began: datetime, ended: datetime | None) -> Bar:
        """A bar from one moment to another, or to the end of the history; never too narrow to be seen."""
        left, right = (100.0 if at is None else self.place(at) for at in (began, ended))
        width = max(right - left, LEAST)
        return Bar(_percent(min(left, 100 - width)), _percent(width))

    def ticks(self) -> Iterator[tuple[str, float]]:
        """Places at equal distances, each with its seconds since the beginning."""
        for index in range(TICKS + 1) if self._seconds else ():
            yield _percent(100 * index / TICKS), self._seconds * index / TICKS


def _percent(value: float) -> str:
    return f"{value:.2f}%"
