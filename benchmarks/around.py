"""What does the loop add to a save: the runner's part, as the difference to its log alone?

In each round a run with a coroutine as its tool, one with a plain function, and a log that is given the lines of the
first take turns. A turn of a run is two saves. Processor time is that of the whole process, its threads included. The
same once more while no processor may sleep: what follows a flush runs slower when one slept through it.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import eventlog
import replay
import runner
from benchmarks import arms, history, models, table
from replay.events import ModelAsked

Took = tuple[float, float]
"""Seconds on the clock, and of the processors."""
SAVES = 2
"""A turn's."""


def now() -> Took:
    """What both clocks say."""
    return time.perf_counter(), time.process_time()


def middles(marks: Sequence[Took], saves: int) -> Took:
    """Seconds of a save by both clocks: the median between two marks."""
    wall, cpu = ([after - before for before, after in pairwise(clock)] for clock in zip(*marks, strict=True))
    return arms.middle(wall) / saves, arms.middle(cpu) / saves


def run(path: Path, turns: int, *, plain: bool, skip: int = 0) -> Took:
    """A save of a run of so many turns; the first `skip` do not count."""
    results = models.texts(1100)
    model = models.Model(turns)
    marks: list[Took] = []

    async def look(at: str) -> str:  # noqa: ARG001 (as a model calls it)
        return results[model.asked % len(results)]

    def look_plainly(at: str) -> str:  # noqa: ARG001
        return results[model.asked % len(results)]

    tool = runner.tool(effect="reads", name="look")(look_plainly if plain else look)

    def watch(_state: replay.State, events: Sequence[replay.Event]) -> None:
        if any(isinstance(event, ModelAsked) for event in events):
            marks.append(now())

    runner.start_sync(models.agent(model, tool), "go", runs=path, run="r", watch=watch)
    return middles(marks[skip + 1 :], SAVES)


def alone(path: Path, lines: Sequence[Sequence[bytes]]) -> Took:
    """A save of the same lines by the log alone."""
    with eventlog.store(path).create("r", at=history.AT, events=lines[0]) as log:
        marks = [now()]
        for events in lines[1:]:
            log.append(history.AT, events)
            marks.append(now())
    return middles(marks, 1)


def lines_of(turns: int) -> list[tuple[bytes, ...]]:
    """The lines that such a run writes."""
    with arms.room() as path:
        run(path, turns, plain=False)
        return [tuple(map(bytes, line.events)) for line in eventlog.store(path).read("r").lines]


Way = Callable[[Path], Took]
LOG, AWAKE = "its log alone", ", no processor asleep"


def rounds(ways: dict[str, Way], count: int) -> dict[str, list[Took]]:
    """What each way took in each round; they take turns."""
    taken = {name: list[Took]() for name in ways}
    for name in arms.turns(ways, count):
        with arms.room() as path, arms.awake() if name.endswith(AWAKE) else contextlib.nullcontext():
            gc.collect()
            taken[name].append(ways[name](path))
    return taken


def row(name: str, found: Sequence[Took], base: Sequence[Took]) -> list[str]:
    """What a way took, and how much that is more than its log alone took in the same rounds."""
    middle = [arms.us(arms.middle([took[clock] for took in found])) for clock in (0, 1)]
    more = [
        arms.us(arms.middle([took[clock] - least[clock] for took, least in zip(found, base, strict=True)]))
        for clock in (0, 1)
    ]
    return [name, *middle, *(more if found is not base else ["", ""])]


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    turns, count = (60, 5) if short else (150, 15)
    lines = lines_of(turns)
    ways: dict[str, Way] = {
        LOG: lambda path: alone(path, lines),
        "a coroutine as its tool": lambda path: run(path, turns, plain=False),
        "a plain function as its tool": lambda path: run(path, turns, plain=True),
    }
    ways |= {LOG + arms.AGAIN: ways[LOG], **{name + AWAKE: way for name, way in ways.items()}}
    taken = rounds(ways, count)
    rows = [row(name, found, taken[LOG + AWAKE if name.endswith(AWAKE) else LOG]) for name, found in taken.items()]
    head = ["a run with", "µs a save", "µs of processors", "more than the log alone: µs", "µs of processors"]
    notes = [f"{turns} turns of two saves, {count} rounds"]
    table.report("around", "What does the loop add to a save?", head, rows, notes=notes, short=short)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
