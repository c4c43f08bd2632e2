"""Do the bytes of a long conversation stay linear: 1,000 calls of 5 KB, on top of 209,000 tokens?

An engine that stores each request writes the whole conversation at every turn. refold stores what is new, and names the
rest by a digest. Nothing is timed: the bytes are exact, and the same on every machine.
"""

from __future__ import annotations

from pathlib import Path

import eventlog
import runner
from benchmarks import arms, models, table

TOKENS = 209_000
CALLS = 1_000
RESULT = 5_000


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    calls = 100 if short else CALLS
    results = models.texts(RESULT)

    @runner.tool(effect="reads")
    async def look(at: str) -> str:  # noqa: ARG001 (as a model calls it)
        return results[model.asked % len(results)]

    model = models.Model(calls, size=300)
    with arms.room() as path:
        task = models.texts(TOKENS * 4, 1)[0]
        runner.start_sync(models.agent(model, look), task, runs=path, run="r")
        lines = eventlog.store(path).read("r").lines
        log = sum(file.stat().st_size for file in Path(path / "r").glob("seg-*"))
    sizes = [sum(len(event) for event in line.events) for line in lines]
    events = sum(sizes)
    asked = len(task) + sum((len(task) + n * (RESULT + 300)) for n in range(1, calls + 1))
    tenth = max(len(lines) // 10, 1)
    rows = [
        ["log", f"{log:,}"],
        ["JSON of its events", f"{events:,}"],
        ["log / JSON of its events", f"{log / events:.3f}"],
        ["bytes of events a save, first tenth after the task", f"{sum(sizes[3 : 3 + tenth]) / tenth:,.0f}"],
        ["bytes of events a save, last tenth", f"{sum(sizes[-tenth - 2 : -2]) / tenth:,.0f}"],
        ["bytes of all requests, had each been stored", f"{asked:,}"],
    ]
    # Where a tenth of the calls is done: what the log held by then, and what it would hold with every request in it.
    done = [calls * part // 10 for part in range(1, 11)]
    saved = [sum(sizes[: 2 + 2 * n]) for n in done]
    stored = [len(task) + sum(len(task) + k * (RESULT + 300) for k in range(1, n + 1)) for n in done]
    plot = {
        "x": done,
        "series": {"refold's events": saved, "each request stored": stored},
        "xlabel": "calls",
        "ylabel": "bytes",
        "log": True,
    }
    question = f"Do bytes stay linear: {calls:,} calls of {RESULT:,} bytes on {TOKENS:,} tokens?"
    table.report("conversation", question, ["what", "bytes"], rows, plot=plot, short=short)


if __name__ == "__main__":
    main()
