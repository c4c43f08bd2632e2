"""A directory of runs, read without a lock: what is there, and what is unfinished (spec row 32)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import eventlog
import replay
from replay import State
from runner import _folded

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Listed:
    """One run of a directory: its state, or the problem that keeps it from being read; and when it began, if known."""

    run: str
    state: State | None = field(repr=False)
    problem: Exception | None = None
    began: datetime | None = None


def listed(runs: str | Path, among: Iterable[str] | None = None) -> list[Listed]:
    """Every run of a directory, newest first. A run that can't be read is listed with its problem.

    `among` restricts it to these names (of `eventlog.names`), so that a large directory can be shared out.

    Raises `eventlog.NotARunsDirectory`.
    """
    where = Path(runs)
    names = eventlog.names(where) if among is None else among
    found = [entry for run in names if (entry := _look(where, run))]
    found.sort(key=lambda entry: (entry.began or _NEVER, entry.run), reverse=True)
    return found


def unfinished(runs: str | Path) -> list[Listed]:
    """The runs a resume could carry on: neither done nor stopped for good, and readable."""
    return [
        entry
        for entry in listed(runs)
        if entry.state is not None
        and entry.state.phase not in ("done", "new")
        and not (entry.state.stopped is not None and entry.state.stopped.final)
    ]


def read(run: str, runs: str | Path, *, disk: eventlog.Disk = eventlog.DISK) -> State:
    """The state of one run, read without a lock; from a snapshot on where one counts. `disk` as in `runner.start`.

    Raises the log's errors, `replay.ReplayError`.
    """
    return _folded.read(Path(runs), run, disk=disk)


def _look(runs: Path, run: str) -> Listed | None:
    """One run, read once; None for what is no run."""
    try:
        state, began = _folded.glance(runs, run)
    except eventlog.NoSuchRun:
        return None
    except (eventlog.LogError, replay.ReplayError, OSError) as problem:
        return Listed(run, None, problem, eventlog.began(runs, run))
    return Listed(run, state, None, began)
