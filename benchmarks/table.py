"""One question, one table: printed, kept as JSON, from which plots are made, and put on the page.

A table of README.md stands between two marks that name it; the words around it are written by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks import arms

RESULTS = arms.ROOT / "results"
PAGE = arms.ROOT / "README.md"


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
    if not short:
        put(name, kept)


def put(name: str, kept: dict[str, Any]) -> None:
    """Put a result on the page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text(encoding="utf-8")
    if begin not in text:
        sys.exit(f"{PAGE.name} has no place for {name}: write {begin} and {end} where it belongs")
    made = f"{begin}\n{markdown(kept)}{end}"
    PAGE.write_text(text[: text.index(begin)] + made + text[text.index(end) + len(end) :], encoding="utf-8")


def markdown(kept: dict[str, Any]) -> str:
    """A result as Markdown, with its question, its machine and its notes."""
    machine = " · ".join(f"{key} {value}" for key, value in kept["machine"].items())
    lines = [kept["head"], ["---"] * len(kept["head"]), *kept["rows"]]
    body = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    notes = "".join(f"- {note}\n" for note in kept["notes"])
    parts = [f"**{kept['question']}**", body, *([notes.rstrip()] if notes else []), machine]
    return "\n\n".join(parts) + "\n"
