"""A directory of runs, read without a lock: what is there, and what is unfinished (spec row 32)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import eventlog
import replay
from replay import State
from runner import _folded


@dataclass(frozen=True)
class Listed:
    """One run of a directory: its state, or the problem that keeps it from being read."""

    run: str
    state: State | None = field(repr=False)
    problem: Exception | None = None


def listed(runs: str | Path) -> list[Listed]:
    """Every run of a directory, newest first. A run that can't be read is listed with its problem.

    Raises `eventlog.NotARunsDirectory`.
    """
    return [_look(Path(runs), run) for run in eventlog.runs(Path(runs))]


def unfinished(runs: str | Path) -> list[Listed]:
    """The runs a resume could carry on: neither done nor stopped for good, and readable."""
    return [
        entry
        for entry in listed(runs)
        if entry.state is not None
        and entry.state.phase not in ("done", "new")
        and not (entry.state.stopped is not None and entry.state.stopped.final)
    ]


def read(run: str, runs: str | Path) -> State:
    """The state of one run, read without a lock; from a snapshot on where one counts.

    Raises the log's errors, `replay.ReplayError`.
    """
    return _folded.read(Path(runs), run)


def _look(runs: Path, run: str) -> Listed:
    try:
        return Listed(run, read(run, runs))
    except (eventlog.LogError, replay.ReplayError, OSError) as problem:
        return Listed(run, None, problem)
