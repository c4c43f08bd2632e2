"""Many runs in one process, a log each: what goes through, when is a thing durable, how long does the loop stand?

Tight: every run goes on as fast as it may. Paced: the runs think, so that together they make a given number of events
a second. A thing is durable when the save that holds it has returned: the time is taken from the moment a tool or the
model returned it. The loop stands still for as long as a timer that rings every millisecond is late.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import eventlog
import replay
import runner
from benchmarks import arms, history, models, table

PACE = 2_500
"""Events a second of all runs together, when paced: a turn has four."""
CASES = [(1, 0), (10, 0), (100, 0), (1_000, 0), (1, 100), (100, PACE), (1_000, PACE)]
"""Runs, and the pace of all together; 0: as fast as they may."""
TOGETHER, THREADS = 100, 8
LOGS = f"their logs alone, {THREADS} threads"
FILES = 6
"""Open files of a run, and a few more."""


@dataclass
class Seen:
    """What was seen of all runs: when saves were durable, how late the timer was."""

    durable: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    events: int = 0
    begun: float = 0.0
    ended: float = 0.0
    files: int = 0


class One:
    """One run: its model, its tool, and the moment at which something last came back."""

    def __init__(self, seen: Seen, turns: int, pause: float) -> None:
        self.seen, self.back, self.source = seen, 0.0, random.Random(id(self))
        self.begun = asyncio.Event()
        self.pause = pause
        results = models.texts(1100)
        model = models.Model(turns, think=self.think)

        @runner.tool(effect="reads")
        async def look(at: str) -> str:  # noqa: ARG001 (as a model calls it)
            await self.think()
            return results[model.asked % len(results)]

        self.agent = models.agent(model, look)

    async def think(self) -> None:
        """Take the time that the pace wants, a little more or less, and note when it is over."""
        if self.pause:
            await asyncio.sleep(self.pause * self.source.uniform(0.5, 1.5))
        self.back = time.perf_counter()

    def watch(self, _state: replay.State, events: Sequence[replay.Event]) -> None:
        """A save has returned."""
        now = time.perf_counter()
        self.begun.set()
        if self.seen.begun and not self.seen.ended:
            self.seen.events += len(events)
            if self.back:
                self.seen.durable.append(now - self.back)


async def stalls(seen: Seen) -> None:
    """Ring every millisecond, and note how late it was."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        if seen.begun and not seen.ended:
            seen.stalls.append(max(time.perf_counter() - begun - 0.001, 0))


async def together(runs: int, path: Path, seconds: float, pace: float) -> Seen:
    """Let so many runs go for so long; what they do to begin and to end does not count."""
    seen = Seen()
    everyone = [One(seen, 10**9, runs * 2 / pace if pace else 0) for _ in range(runs)]
    timer = asyncio.ensure_future(stalls(seen))
    tasks = [
        asyncio.ensure_future(runner.start(one.agent, "go", runs=path, run=f"r{n}", watch=one.watch))
        for n, one in enumerate(everyone)
    ]
    for one, task in zip(everyone, tasks, strict=True):  # a signal may stop a run before it begins
        task.add_done_callback(lambda _, begun=one.begun: begun.set())
    await asyncio.gather(*(one.begun.wait() for one in everyone))
    await asyncio.sleep(seconds / 4)
    seen.begun = time.perf_counter()
    await asyncio.sleep(seconds)
    seen.ended = time.perf_counter()
    with contextlib.suppress(OSError):
        seen.files = len(os.listdir("/proc/self/fd"))
    timer.cancel()
    for task in tasks:
        task.cancel()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(error, asyncio.CancelledError):
            sys.exit(f"a run ended by itself, and the others were measured without it: {error!r}")
    return seen


def alone(runs: int, path: Path, seconds: float) -> float:
    """Events a second when eight threads do nothing but save into so many logs: what the loop around them costs."""
    events = history.encoded(200)
    logs = [eventlog.store(path).create(f"r{n}", at=history.AT, events=[b"{}"]) for n in range(runs)]
    counts = [0] * THREADS
    end = time.perf_counter() + seconds

    def work(thread: int) -> None:
        for line in itertools.cycle(events):
            for log in logs[thread::THREADS]:
                log.append(history.AT, line)
                counts[thread] += len(line)
            if time.perf_counter() > end:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    for log in logs:
        log.close()
    return sum(counts) / took


def allow(runs: int) -> None:
    """Have the system let this process open the files of so many runs; end it where it does not."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = runs * FILES + 100
    if most not in (-1, resource.RLIM_INFINITY) and most < needed:
        sys.exit(f"{runs} runs need {needed} open files, and this process may have {most} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, most))


def rates(found: Sequence[Seen]) -> list[float]:
    """Events a second, of each round."""
    return [seen.events / (seen.ended - seen.begun) for seen in found]


def row(case: tuple[int, int], found: Sequence[Seen], logs: Sequence[float]) -> list[str]:
    """The figures of so many runs at a pace."""
    runs, pace = case
    ms = [
        f"{arms.middle([arms.quantile(values, part) for values in taken]) * 1000:.2f}"
        for taken in ([seen.durable for seen in found], [seen.stalls for seen in found])
        for part in (0.5, 0.99)
    ]
    how, times = ("tight", f"{arms.ratio(rates(found), logs):.2f}") if not pace else (f"{pace:,} events a second", "")
    return [f"{runs:,}", how, f"{arms.middle(rates(found)):,.0f}", times, *ms, str(found[0].files)]


def main() -> None:
    """Answer, for 1 to 1,000 runs."""
    short = table.quick(__doc__)
    seconds, count = (1.5, 1) if short else (4.0, arms.ROUNDS)
    cases = [(1, 0), (100, 0), (300, PACE)] if short else CASES
    allow(max(runs for runs, _ in cases))
    found: dict[tuple[int, int], list[Seen]] = {case: [] for case in cases}
    logs: list[float] = []
    for name in arms.turns([*map(str, range(len(cases))), LOGS], count):
        with arms.room() as path:
            if name == LOGS:
                logs.append(alone(TOGETHER, path, seconds))
            else:
                runs, pace = case = cases[int(name)]
                found[case].append(asyncio.run(together(runs, path, seconds, pace)))
    rows = [row(case, seen, logs) for case, seen in found.items()]
    rows.append([f"{TOGETHER}", LOGS, f"{arms.middle(logs):,.0f}", "1.00", "", "", "", "", ""])
    head = [
        "runs",
        "pace",
        "events a second",
        "times logs alone",
        "durable p50 ms",
        "p99",
        "loop stalls p50 ms",
        "p99",
        "open files",
    ]
    notes = [
        "the whole of refold: decide, fold, the tool's and the model's tasks, encode, save; two events a save",
        "one run saves in the loop's thread, several there but for the flush (runner/_engine/save_pool.py says why)",
    ]
    plot = {
        "x": [runs for runs, pace in cases if not pace],
        "series": {"events a second, tight": [arms.middle(rates(found[case])) for case in cases if not case[1]]},
        "xlabel": "runs",
        "ylabel": "events a second",
        "log": True,
    }
    table.report("many", "Many runs in one process", head, rows, notes=notes, plot=plot, short=short)


if __name__ == "__main__":
    main()
