"""What does a turn cost: flushes and time of a turn with 1, 4 and 16 calls, that read or that act?

Flushes are counted where Python asks the system for them, and are the same on every machine: a reply and its first
marker share a line, calls that act share one line between each two, and up to eight reads are one wave.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Self

import replay
import runner
from benchmarks import arms, models, table
from replay.events import ModelAsked
from replay.values import Effect

CALLS = (1, 4, 16)


class Flushes:
    """Counts `fsync` and `fdatasync` of this process while it is used as a context."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: dict[str, Callable[[int], None]] = {}

    def __enter__(self) -> Self:
        """Begin to count."""
        for name in ("fsync", "fdatasync"):
            if hasattr(os, name):
                self._kept[name] = getattr(os, name)
                setattr(os, name, self._counting(self._kept[name]))
        return self

    def __exit__(self, *_: object) -> None:
        """Put the calls back."""
        for name, kept in self._kept.items():
            setattr(os, name, kept)

    def _counting(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def counted(fd: int) -> None:
            self.count += 1
            real(fd)

        return counted


def turn(calls: int, effect: Effect, turns: int) -> tuple[float, list[float]]:
    """Flushes a turn (zeros laid ahead not counted in), and the seconds of each turn."""
    results = models.texts(300)
    ends: list[float] = []
    counts: list[int] = []
    model = models.Model(turns, calls=calls, size=300)

    @runner.tool(effect=effect)
    async def look(at: str) -> str:  # noqa: ARG001 (as a model calls it)
        return results[0]

    def watch(_state: replay.State, events: Sequence[replay.Event]) -> None:
        if any(isinstance(event, ModelAsked) for event in events):
            ends.append(time.perf_counter())
            counts.append(flushes.count)

    with arms.room() as path, Flushes() as flushes:
        runner.start_sync(models.agent(model, look), "go", runs=path, run="r", watch=watch)
    steps = [after - before for before, after in pairwise(counts)]
    return min(steps), [after - before for before, after in pairwise(ends)]


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    turns, rounds = (20, 3) if short else (60, arms.ROUNDS)
    rows = []
    effects: tuple[Effect, ...] = ("reads", "non_idempotent")
    found: dict[tuple[int, str], list[tuple[float, list[float]]]] = {}
    for _ in range(rounds):
        for calls in CALLS:
            for effect in effects:
                found.setdefault((calls, effect), []).append(turn(calls, effect, turns))
    for (calls, name), taken in found.items():
        flushes = min(count for count, _ in taken)
        middle = arms.middle([arms.middle(seconds) for _, seconds in taken])
        rows.append([str(calls), name, f"{flushes:g}", f"{middle * 1000:.2f}", f"{middle / flushes * 1e6:,.0f}"])
    head = ["calls", "effect", "flushes a turn", "ms a turn", "µs a flush"]
    notes = ["one flush more for every 64 KiB of zeros that are laid ahead, which is not counted in here"]
    plot = {
        "x": list(CALLS),
        "series": {effect: [float(row[3]) for row in rows if row[1] == effect] for effect in effects},
        "xlabel": "calls a turn",
        "ylabel": "ms a turn",
    }
    table.report("turns", "What does a turn cost?", head, rows, notes=notes, plot=plot, short=short)


if __name__ == "__main__":
    main()
