"""A thousand pieces of text a second to one reader, and to fifty: do they all come, and what do they cost the run?

The model tells its pieces by the clock. A reader that is too slow is told how many it missed, and never holds the run.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

import runner
from benchmarks import arms, table
from runner.testing import ScriptedModel

RATE = 1_000
"""Pieces a second."""
READERS = (0, 1, 50)


@dataclass
class Talking:
    """A model whose one reply comes in pieces, for `seconds`; what processors took meanwhile is in `share`."""

    seconds: float
    name: str = "talking"
    share: float = 0.0
    rate: float = 0.0
    _reply: ScriptedModel = field(default_factory=lambda: ScriptedModel(["over"]))

    def bound(self, request: runner.Request) -> runner.CostBound:
        """The most a request can cost."""
        return self._reply.bound(request)

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Tell what is due by the clock, 200 times a second."""
        begun, used, told, count = time.perf_counter(), time.process_time(), 0, int(self.seconds * RATE)
        while told < count:
            due = min(count, int((time.perf_counter() - begun) * RATE))
            for piece in range(told, due):
                if request.heard is not None:
                    request.heard(f"{piece} ")
            told = due
            await asyncio.sleep(0.005)
        took = time.perf_counter() - begun
        self.share, self.rate = (time.process_time() - used) / took, count / took
        return await self._reply.ask(request)


async def _told(place: Path, readers: int, seconds: float) -> list[str]:
    """A row: the readers, the rate, the pieces that came, those that were missed and told, the share of a core."""
    model = Talking(seconds)
    agent = runner.Agent(name="talks", model=model)
    runner.enqueue(agent, "go", runs=place, run="r")

    async def read() -> tuple[list[int], int]:
        told = [one async for one in runner.stream("r", runs=place)]
        return [int(one.text) for one in told if one.kind == "text"], sum(one.dropped for one in told)

    reading = [asyncio.create_task(read()) for _ in range(readers)]
    await asyncio.sleep(0.5)
    await runner.resume("r", agent, runs=place)
    heard = await asyncio.gather(*reading)
    assert all(pieces == sorted(set(pieces)) for pieces, _ in heard), "out of order"
    assert all(len(pieces) + missed == int(seconds * RATE) for pieces, missed in heard), "neither told nor missed"
    came, missed = sum(len(pieces) for pieces, _ in heard), sum(missed for _, missed in heard)
    return [f"{readers}", f"{model.rate:,.0f}", f"{came:,}", f"{missed:,}", f"{model.share:.1%}"]


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    rows = []
    for readers in READERS:
        with arms.room() as place:
            rows.append(asyncio.run(_told(place, readers, 4.0 if short else 20.0)))
    head = ["readers", "pieces a second", "came", "missed, and told so", "of a core"]
    table.report("pieces", "What do readers of a model's text cost?", head, rows, short=short)


if __name__ == "__main__":
    main()
