"""What does it take to begin: what `import runner` takes in a fresh interpreter, and what it brings along.

Counted is processor time, because the system's other work is no part of it; the modules are compiled beforehand.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks import arms, table

PROGRAM = "import sys, time; t = time.process_time(); import {name}; print(time.process_time() - t, *sys.modules)"
UNWANTED = ("click", "rich", "httpx", "httpx2", "anthropic", "openai", "mcp", "jinja2", "structlog", "starlette")
NAMES = ("asyncio", "asyncio" + arms.AGAIN, "msgspec", "eventlog", "replay", "runner", "runner._cli.main")


def imported(name: str) -> tuple[float, set[str]]:
    """Seconds, and the modules that were there afterwards."""
    command = [sys.executable, "-c", PROGRAM.format(name=name)]
    compiled = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=arms.ROOT.parent, env=compiled)  # noqa: S603 (ours)
    out = done.stdout.split()
    return float(out[0]), set(out[1:])


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    took: dict[str, list[float]] = {name: [] for name in NAMES}
    brought = {name: imported(name.removesuffix(arms.AGAIN))[1] for name in NAMES}
    for name in arms.turns(NAMES, 7 if short else 21):
        took[name].append(imported(name.removesuffix(arms.AGAIN))[0])
    rows = [
        [
            name,
            f"{arms.middle(seconds) * 1000:.0f}",
            f"{min(seconds) * 1000:.0f}",
            f"{arms.ratio(seconds, took['asyncio']):.2f}",
            f"{len(brought[name])}",
            ", ".join(module for module in UNWANTED if module in brought[name]) or "none",
        ]
        for name, seconds in took.items()
    ]
    head = ["import", "p50 ms", "least ms", "times asyncio", "modules", "of the command's and the SDKs' packages"]
    plot = {"x": list(NAMES), "series": {"p50": [float(row[1]) for row in rows]}, "ylabel": "ms of a processor"}
    table.report("begin", "What does it take to begin?", head, rows, plot=plot, short=short)


if __name__ == "__main__":
    main()
