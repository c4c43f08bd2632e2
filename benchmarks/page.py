"""The page: README.md's tables made anew from the results, and a plot of each, as SVG and PNG.

`--quick` makes nothing of the page and draws the plots of the quick results beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks import table


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
    for path in sorted(place.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if "question" not in kept:  # another script's own
            continue
        if kept.get("plot"):
            draw(kept, path)
        if not short:
            table.put(path.stem, kept)


if __name__ == "__main__":
    main()
