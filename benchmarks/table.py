"""One question, one table: printed, and kept as JSON, from which the page and the plots are made."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from benchmarks import arms

RESULTS = arms.ROOT / "results"


def quick(about: str | None) -> bool:
    """Whether the short version was asked for on the command line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes; its figures are kept apart")
    return bool(parser.parse_args().quick)


def report(
    name: str,
    question: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    notes: Sequence[str] = (),
    plot: dict[str, Any] | None = None,
    short: bool,
) -> None:
    """Print a table, and keep it. `plot` says what is drawn: `x`, `series`, `xlabel`, `ylabel`, and `log` for both."""
    machine = arms.machine()
    print(f"\n{question}")
    print("   ".join(f"{key}: {value}" for key, value in machine.items()))
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for note in notes:
        print(f"  {note}")
    kept = {
        "question": question,
        "machine": machine,
        "head": list(head),
        "rows": [list(row) for row in rows],
        "notes": list(notes),
        "plot": plot,
    }
    place = RESULTS / "quick" if short else RESULTS
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
