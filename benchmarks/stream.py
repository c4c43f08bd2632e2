"""What does it cost a run to be followed: by nobody, by one reader, by fifty, and by one in another process?

The model answers at once and tells nothing, so every save is told and nothing else happens: the worst there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import runner
from benchmarks import arms, models, table

READERS = {"nobody": 0, "nobody" + arms.AGAIN: 0, "one reader": 1, "fifty readers": 50, "one in another process": 0}
ELSEWHERE = """
import asyncio, sys, runner
async def main():
    print("ready", flush=True)
    print(len([told async for told in runner.stream("r", runs=sys.argv[1])]))
asyncio.run(main())
"""


@contextlib.contextmanager
def elsewhere(place: Path) -> Iterator[None]:
    """A reader in another process, which must come to the end."""
    command = [sys.executable, "-c", ELSEWHERE, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:  # noqa: S603 (our own program)
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        yield
        assert int(reader.stdout.read()) > 0


async def _run(place: Path, turns: int, name: str) -> float:
    """The seconds of a run, from its first turn to its end."""

    @runner.tool(effect="reads")
    async def look(at: str) -> str:
        return at * 100

    async def read() -> int:
        return len([told async for told in runner.stream("r", runs=place)])

    agent = models.agent(models.Model(turns, size=300), look)
    runner.enqueue(agent, "go", runs=place, run="r")
    readers = [asyncio.create_task(read()) for _ in range(READERS[name])]
    with elsewhere(place) if name.startswith("one in") else contextlib.nullcontext():
        await asyncio.sleep(0.2)
        begun = time.perf_counter()
        await runner.resume("r", agent, runs=place)
        took = time.perf_counter() - begun
    assert all(count > turns for count in await asyncio.gather(*readers))
    return took


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    turns, rounds = (100, 5) if short else (300, 15)
    took: dict[str, list[float]] = {name: [] for name in READERS}
    for name in arms.turns(READERS, rounds):
        with arms.room() as place:
            took[name].append(asyncio.run(_run(place, turns, name)))
    rows = [
        [name, f"{arms.middle(seconds) / turns * 1e3:.2f}", f"{arms.ratio(seconds, took['nobody']):.2f}"]
        for name, seconds in took.items()
    ]
    question = "What does it cost a run to be followed?"
    table.report("stream", question, ["followed by", "ms a turn", "times nobody"], rows, short=short)


if __name__ == "__main__":
    main()
