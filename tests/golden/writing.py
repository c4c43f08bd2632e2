"""All shapes, written to a directory of runs."""

from __future__ import annotations

from pathlib import Path

from tests.golden.places import PLACES
from tests.golden.rungs import RUNGS
from tests.golden.shapes import SHAPES
from tests.golden.telling import Fixed, Telling, kept

DIED = frozenset({"rung-open", "interrupted", "stopped-resumes"})
"""Histories whose last process was killed: their logs have no end."""


def make(runs: Path) -> dict[str, list[str]]:
    """Write every history but the batch to a directory of runs; their names, each with its agents, life by life."""
    disk = Fixed()
    told: list[Telling] = []
    for name, (tell, agent) in {**SHAPES, **RUNGS}.items():
        history = Telling(name, agent)
        tell(history)
        log = kept(history, runs, disk)
        log.abandon() if name in DIED else log.close()
        told.append(history)
    for place in PLACES:
        told += place(runs, disk)
    for path in runs.glob("*/*"):
        if path.name == "lock":
            path.unlink()
        elif path.name.startswith("seg-"):
            path.write_bytes(path.read_bytes().rstrip(b"\0"))
    return {history.name: history.agents for history in told}
