"""What does it take to begin: the time that `import runner` takes in a fresh interpreter, and what it brings along."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import arms, table

PROGRAM = "import sys, time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t, *sys.modules)"
UNWANTED = ("click", "rich", "httpx", "httpx2", "anthropic", "openai", "mcp", "jinja2", "structlog", "starlette")


def imported(name: str) -> tuple[float, set[str]]:
    """Seconds, and the modules that were there afterwards."""
    command = [sys.executable, "-c", PROGRAM.format(name=name)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=arms.ROOT.parent)  # noqa: S603 (ours)
    out = done.stdout.split()
    return float(out[0]), set(out[1:])


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    rows = []
    for name in ("asyncio", "msgspec", "eventlog", "replay", "runner"):
        found = [imported(name) for _ in range(7 if short else 21)]
        seconds = [took for took, _ in found]
        brought = [module for module in UNWANTED if module in found[0][1]]
        cells = [name, f"{arms.middle(seconds) * 1000:.0f}", f"{min(seconds) * 1000:.0f}", ", ".join(brought) or "none"]
        rows.append(cells)
    head = ["import", "p50 ms", "least ms", "of the command's and the SDKs' packages"]
    plot = {"x": [row[0] for row in rows], "series": {"p50": [float(row[1]) for row in rows]}, "ylabel": "ms"}
    table.report("begin", "What does it take to begin?", head, rows, plot=plot, short=short)


if __name__ == "__main__":
    main()
