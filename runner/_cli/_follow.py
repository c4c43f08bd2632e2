"""`refold show --follow`: a run's events from the first on, and the coming ones while a process holds the run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

import eventlog
import replay
from replay import State

BETWEEN = 0.25
"""Seconds between two looks at the log."""


class Seen(NamedTuple):
    """One event of the log, as it stands there and decoded, and the state with it folded."""

    raw: msgspec.Raw
    event: replay.AnyEvent
    state: State


def follow(runs: Path, run: str) -> Iterator[Seen]:
    """Every event as it comes, to the end of what a process that holds the run writes.

    Raises what `eventlog.read` and the fold raise.
    """
    state, upto = replay.NEW, 0
    while True:
        held = eventlog.lock_holder(runs, run) is not None  # asked before the log is read, so that nothing is missed
        began = time.monotonic()
        lines = eventlog.read(runs, run).lines
        for line in lines[upto:]:
            for raw in line.events:
                event = replay.decode(raw, seq=line.seq)
                state = replay.step(state, event, line.at, seq=line.seq)
                state = replace(state, seq=line.seq, life=line.life, at=line.at)
                yield Seen(raw, event, state)
        upto = len(lines)
        if not held:
            return
        time.sleep(max(BETWEEN, 4 * (time.monotonic() - began)))  # a long log is read a fifth of the time at most
