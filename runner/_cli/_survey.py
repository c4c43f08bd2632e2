"""A whole directory of runs at a glance: one row for each, however many there are.

Every run is folded from its log, because nothing else is the truth. Ten thousand of them take longer than a person
waits for a list, so a large directory is shared out among processes, which only read.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from pathlib import Path
from typing import NamedTuple

import eventlog
import runner

ALONE = 400
"""Runs that one process reads before starting another is worth it."""
_NEVER = datetime.min.replace(tzinfo=UTC)


class Row(NamedTuple):
    """One run, or the `problem` that keeps it from being read. `dollars` holds the bounds of lost asks too.

    `at` is its last save.
    """

    run: str
    task: str | None = None
    agent: str | None = None
    phase: str | None = None
    turns: int | None = None
    stopped: str | None = None
    resumes: int | None = None
    dollars: float | None = None
    open: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    at: datetime | None = None
    problem: str | None = None


def survey(runs: Path) -> list[Row]:
    """Every run of a directory, newest first. Raises `eventlog.NotARunsDirectory`."""
    names = eventlog.names(runs)
    workers = min(os.cpu_count() or 1, math.ceil(len(names) / ALONE))
    if workers <= 1:
        return [row for _, row in _rows(runs, names)]
    parts = [names[worker::workers] for worker in range(workers)]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), initializer=_freely) as pool:
        return [row for _, row in merge(*pool.map(partial(_rows, runs), parts), key=_newest, reverse=True)]


def _freely() -> None:
    """A process that lives for a second and makes no circles has nothing to collect."""
    gc.disable()


def _rows(runs: Path, among: Sequence[str]) -> list[tuple[datetime | None, Row]]:
    """The rows of these runs, each with when it began, newest first."""
    return [(entry.began, _row(entry)) for entry in runner.listed(runs, among)]


def _newest(entry: tuple[datetime | None, Row]) -> tuple[datetime, str]:
    began, row = entry
    return began or _NEVER, row.run


def _row(entry: runner.Listed) -> Row:
    state = entry.state
    if state is None:
        return Row(entry.run, problem=str(entry.problem))
    return Row(
        run=entry.run,
        task=state.task,
        agent=state.agent,
        phase=state.phase,
        turns=state.turns,
        stopped=state.stopped.reason if state.stopped is not None else None,
        resumes=state.resumes,
        dollars=state.spent.total_dollars,
        open=state.open,
        waiting=tuple(question.id for question in state.waiting),
        at=state.at,
    )
