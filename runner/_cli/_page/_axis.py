"""The page's time axis: one scale for every bar, on which a night between two lives takes no more than its share.

It goes with time, with two exceptions. The few stretches between two lines that are longer than everything shorter
together are cut to a tenth of the rest, and marked as cut: a run that waited a day still shows its seconds. And a third
of the width is dealt out to all stretches alike: what took a millisecond beside what took a minute can still be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import pairwise
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
    """Where a stretch of time lies on the axis, in percent of its width."""

    x: str
    w: str


class Cut(NamedTuple):
    """A stretch that is drawn shorter than it was, and how long it was, in seconds."""

    x: str
    w: str
    middle: str
    seconds: float


class Tick(NamedTuple):
    """A place on the axis, and the seconds since the beginning that it stands for."""

    x: str
    seconds: float


class Axis:
    """The scale that the moments of a history make."""

    def __init__(self, moments: Iterable[datetime]) -> None:
        points = sorted(set(moments))
        self._began = points[0] if points else None
        self._points = [(point - points[0]).total_seconds() for point in points]
        stretches = [after - before for before, after in pairwise(self._points)]
        cut = _threshold(stretches)
        drawn = [stretch if stretch <= cut.above else cut.to for stretch in stretches]
        total = sum(drawn) or 1.0
        self._places = [0.0]
        for length in drawn:
            share = (1 - ALIKE) * length / total + ALIKE / len(drawn)
            self._places.append(self._places[-1] + 100 * share)
        self._cut = [index for index, stretch in enumerate(stretches) if stretch > cut.above]

    def place(self, seconds: float) -> float:
        """Where so many seconds after the beginning lie, in percent; what lies outside stands at the edge."""
        points, places = self._points, self._places
        if len(points) < 2 or seconds <= points[0]:  # noqa: PLR2004 (a scale needs two points)
            return 0.0
        if seconds >= points[-1]:
            return 100.0
        before = bisect_right(points, seconds) - 1
        part = (seconds - points[before]) / (points[before + 1] - points[before])
        return places[before] + part * (places[before + 1] - places[before])

    def bar(self, began: datetime, ended: datetime | None) -> Bar:
        """A bar from one moment to another, or to the end of the history; never too narrow to be seen."""
        assert self._began is not None
        left = self.place((began - self._began).total_seconds())
        right = 100.0 if ended is None else self.place((ended - self._began).total_seconds())
        width = max(right - left, LEAST)
        return Bar(_percent(min(left, 100 - width)), _percent(width))

    def cuts(self) -> Iterator[Cut]:
        """The stretches that are drawn shorter than they were."""
        for index in self._cut:
            left, right = self._places[index], self._places[index + 1]
            seconds = self._points[index + 1] - self._points[index]
            yield Cut(_percent(left), _percent(right - left), _percent((left + right) / 2), seconds)

    def ticks(self) -> Iterator[Tick]:
        """Places at equal distances, each with its time."""
        for index in range(TICKS + 1 if len(self._points) > 1 else 0):
            place = 100 * index / TICKS
            yield Tick(_percent(place), self._seconds(place))

    def _seconds(self, place: float) -> float:
        before = min(bisect_right(self._places, place), len(self._places) - 1) - 1
        left, right = self._places[before], self._places[before + 1]
        part = (place - left) / (right - left) if right > left else 0.0
        return self._points[before] + part * (self._points[before + 1] - self._points[before])


class _Threshold(NamedTuple):
    above: float
    to: float


def _threshold(stretches: list[float]) -> _Threshold:
    """Above which length a stretch is cut, and to which."""
    ordered = sorted(stretches)
    shorter = 0.0
    for index, stretch in enumerate(ordered):
        if index >= FEW * len(ordered) - 1 and 0 < shorter < stretch:
            return _Threshold(shorter, SHARE * shorter)
        shorter += stretch
    return _Threshold(float("inf"), 0.0)


def _percent(value: float) -> str:
    return f"{value:.2f}%"
