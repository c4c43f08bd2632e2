"""The page's time axis: one scale for every bar. It is linear in time, with two exceptions.

The few gaps between two lines that are longer than all shorter ones together are drawn with a tenth of the rest, and
marked as cut: a run that waited a day still shows its seconds. And every gap has an equal share of a third of the
width: what took a millisecond beside what took a minute can still be seen.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from typing import NamedTuple

SHARE = 0.12
"""How much of all that is not cut one cut stretch takes."""

ALIKE = 1 / 3
"""The part of the width that every stretch has an equal share of, however short it was."""

FEW = 0.9
"""The part of all stretches that is never cut: what is common is no exception, however long."""

LEAST = 0.4
"""The narrowest bar that can be seen and met by a finger, in percent."""

TICKS = 5


class Bar(NamedTuple):
    """A place on the axis: where it begins and how long it is, in percent of the width; and seconds that are said."""

    x: str
    w: str = ""
    seconds: float = 0.0


class Axis:
    """The scale that the moments of a history make: two lists, of seconds and of places in percent, side by side."""

    def __init__(self, moments: Iterable[datetime]) -> None:
        points = sorted(set(moments))
        self._began = points[0] if points else None
        self._points = [(point - points[0]).total_seconds() for point in points]
        stretches = [after - before for before, after in pairwise(self._points)]
        longest, short = _threshold(stretches)
        drawn = [stretch if stretch <= longest else short for stretch in stretches]
        total = sum(drawn) or 1.0
        shares = [(1 - ALIKE) * length / total + ALIKE / len(drawn) for length in drawn]
        self._places = [100 * place for place in accumulate(shares, initial=0.0)]
        self._cut = [index for index, stretch in enumerate(stretches) if stretch > longest]

    def place(self, moment: datetime) -> float:
        """Where a moment lies, in percent; what lies outside stands at the edge."""
        assert self._began is not None
        return _across((moment - self._began).total_seconds(), self._points, self._places)

    def bar(self, began: datetime, ended: datetime | None) -> Bar:
        """A bar from one moment to another, or to the end of the history; never too narrow to be seen."""
        left, right = (100.0 if at is None else self.place(at) for at in (began, ended))
        width = max(right - left, LEAST)
        return Bar(_percent(min(left, 100 - width)), _percent(width))

    def cuts(self) -> Iterator[Bar]:
        """The stretches that are drawn shorter than they were, with how long they were."""
        for index in self._cut:
            left, right = self._places[index], self._places[index + 1]
            yield Bar(_percent(left), _percent(right - left), self._points[index + 1] - self._points[index])

    def ticks(self) -> Iterator[Bar]:
        """Places at equal distances, each with its time since the beginning."""
        for place in [100 * index / TICKS for index in range(TICKS + 1)] if len(self._points) > 1 else ():
            yield Bar(_percent(place), seconds=_across(place, self._places, self._points))


def _across(value: float, scale: Sequence[float], other: Sequence[float]) -> float:
    """What a value of one scale is on another whose points stand at the same indexes; the ends for what is outside."""
    after = bisect_right(scale, value)
    if after in (0, len(scale)):
        return other[min(after, len(other) - 1)]
    part = (value - scale[after - 1]) / (scale[after] - scale[after - 1])
    return other[after - 1] + part * (other[after] - other[after - 1])


def _threshold(stretches: list[float]) -> tuple[float, float]:
    """The longest stretch that is drawn as it is, and the length that longer ones are drawn with."""
    ordered = sorted(stretches)
    shorter = 0.0
    for index, stretch in enumerate(ordered):
        if index >= FEW * len(ordered) - 1 and 0 < shorter < stretch:
            return shorter, SHARE * shorter
        shorter += stretch
    return float("inf"), 0.0


def _percent(value: float) -> str:
    return f"{value:.2f}%"
