"""How late is the event loop of a service while a hundred runs start in it, and while they are carried on?"""

from __future__ import annotations

import asyncio
import time

import runner
from benchmarks import arms, models, table

RUNS = 100


async def _lateness(stop: asyncio.Event, late: list[float]) -> None:
    """How late a timer of a millisecond is, again and again."""
    while not stop.is_set():
        due = time.perf_counter() + 0.001
        await asyncio.sleep(0.001)
        late.append(time.perf_counter() - due)


async def _measure(place: str) -> list[tuple[str, list[float]]]:
    @runner.tool(effect="reads")
    async def look(at: str) -> str:
        await asyncio.sleep(0.05)
        return at * 100

    agent = models.agent(models.Model(5, size=300), look)
    stop, late = asyncio.Event(), list[float]()
    timer = asyncio.create_task(_lateness(stop, late))
    found = []

    def part(name: str) -> None:
        found.append((name, sorted(late)))
        late.clear()

    await asyncio.sleep(2)
    part("nothing")
    async with runner.Worker([agent], runs=place) as worker:
        started = await asyncio.gather(*(worker.start(agent, "Look.", run=f"r-{n}") for n in range(RUNS)))
        part(f"{RUNS} runs start")
        await asyncio.gather(*(run.outcome() for run in started))
        part("they are carried to their ends")
    stop.set()
    await timer
    return found


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    with arms.room() as where:
        found = asyncio.run(_measure(str(where / "runs")))
    rows = [
        [name, *(f"{late[int(len(late) * part)] * 1e3:.1f}" for part in (0.5, 0.99, 0.999))] for name, late in found
    ]
    question = "How late is the event loop of a worker?"
    table.report("late", question, ["meanwhile", "p50 ms", "p99 ms", "p99.9 ms"], rows, short=short)


if __name__ == "__main__":
    main()
