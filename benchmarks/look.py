"""What does it cost to look at a run again: its story, its history through the current code, its bytes?

The run is a real one, made by the loop with a model that costs nothing. What is timed reads the log from the disk and
needs neither lock nor model: audit, retrace with the agent that made it, and verify, whose reader is deliberately
another one, of the standard library alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import eventlog
import runner
from benchmarks import arms, models, table

EVENTS = (1_000, 10_000)
A_TURN = 4
"""Events of a turn: a reply, a marker, a result, the next ask."""


@runner.tool(effect="reads")
async def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there: {TEXT}"


TEXT = models.texts(860, 1)[0]


def made(path: Path, events: int) -> runner.Agent:
    """The run `r`, and its agent."""
    agent = models.agent(models.Model(events // A_TURN), look)
    runner.start_sync(agent, "Look at everything.", runs=path, run="r")
    return agent


def rows_of(events: int, count: int) -> list[list[str]]:
    """A row for each way to look."""
    with arms.room() as path:
        agent = made(path, events)
        ways: dict[str, Callable[[], object]] = {
            "audit": lambda: runner.review.audit("r", path),
            "retrace": lambda: runner.review.retrace("r", agent, runs=path),
            "verify": lambda: eventlog.store(path).verify("r"),
        }
        took: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(count):
            for name in [*ways][turn % 3 :] + [*ways][: turn % 3]:
                begun = time.perf_counter()
                ways[name]()
                took[name].append(time.perf_counter() - begun)
        found = sum(len(line.events) for line in eventlog.store(path).read("r").lines)
    return [[f"{found:,}", name, f"{arms.middle(t):.2f}", f"{found / arms.middle(t):,.0f}"] for name, t in took.items()]


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    rows = [row for events in (EVENTS[:1] if short else EVENTS) for row in rows_of(events, 5)]
    head = ["events", "way", "seconds", "events a second"]
    largest = rows[-3:]
    plot = {
        "x": [row[1] for row in largest],
        "series": {f"{largest[0][0]} events": [float(row[2]) * 1e3 for row in largest]},
        "ylabel": "ms",
    }
    table.report("look", "What does it cost to look at a run again?", head, rows, plot=plot, short=short)


if __name__ == "__main__":
    main()
