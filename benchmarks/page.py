"""The page: README.md's tables made anew from the results, and a plot of each, as SVG and PNG.

A table stands between two marks that name it; the words around it are written by hand. `--quick` makes nothing of the
page and draws the plots of the quick results beside them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks import table
from benchmarks.arms import ROOT

PAGE = ROOT / "README.md"


def markdown(kept: dict[str, Any]) -> str:
    """A result as Markdown, with its question, its machine and its notes."""
    machine = " · ".join(f"{key} {value}" for key, value in kept["machine"].items())
    lines = [kept["head"], ["---"] * len(kept["head"]), *kept["rows"]]
    body = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    notes = "".join(f"- {note}\n" for note in kept["notes"])
    parts = [f"**{kept['question']}**", body, *([notes.rstrip()] if notes else []), machine]
    return "\n\n".join(parts) + "\n"


def draw(kept: dict[str, Any], place: Path) -> None:
    """Draw a result: lines over numbers, bars over names."""
    plot = kept["plot"]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    if isinstance(plot["x"][0], str):
        (name, values), *_ = plot["series"].items()
        bars = axes.barh(plot["x"], values, color="#35648c")
        axes.bar_label(bars, fmt="%.0f", padding=3)
        axes.invert_yaxis()
        axes.set_xlabel(f"{plot['ylabel']}" if name in plot["ylabel"] else f"{plot['ylabel']}, {name}")
        if plot.get("log"):
            axes.set_xscale("log")
    else:
        for name, values in plot["series"].items():
            axes.plot(plot["x"], values, marker="o", label=name)
        axes.set(xlabel=plot["xlabel"], ylabel=plot["ylabel"])
        axes.legend(frameon=False)
        if plot.get("log"):
            axes.set(xscale="log", yscale="log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(kept["question"], fontsize=10)
    for kind in ("svg", "png"):
        figure.savefig(place.with_suffix(f".{kind}"), dpi=140, metadata={"Date": None} if kind == "svg" else None)
    plt.close(figure)


def main() -> None:
    """Make the page and the plots."""
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "refold"
    short = table.quick(__doc__)
    place = table.RESULTS / "quick" if short else table.RESULTS
    text = PAGE.read_text(encoding="utf-8")
    for path in sorted(place.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if "question" not in kept:  # another script's own
            continue
        if kept.get("plot"):
            draw(kept, path)
        if not short:
            begin, end = f"<!-- {path.stem} -->", f"<!-- end of {path.stem} -->"
            if begin not in text:
                sys.exit(f"{PAGE.name} has no place for {path.stem}: write {begin} and {end} where it belongs")
            made = f"{begin}\n{markdown(kept)}{end}"
            text = text[: text.index(begin)] + made + text[text.index(end) + len(end) :]
    if not short:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
