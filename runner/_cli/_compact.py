"""`refold compact`: a snapshot of a run's state, so that the next resume need not begin at its first event.

The loop does this by itself when a log has grown; the command is for whoever wants it now. The state is folded from
every event, never from an older snapshot. No event is removed: audit and retrace still see all of them.
"""

from __future__ import annotations

from pathlib import Path

import click

import eventlog
import replay
from runner._cli import _options, _out


@click.command()
@_options.run
@_options.runs
def compact(run: str, runs: Path) -> None:
    """Keep a snapshot of RUN's state.

    The next resume starts from it. Every event stays.
    """
    with eventlog.open(runs, run) as log:
        state = replay.load(log.lines)
        snapshot = log.compact(replay.dump(state), replay.FOLD_VERSION)
    assert snapshot is not None
    _out.rows([("run", run), ("line", str(snapshot.seq)), ("snapshot", f"{snapshot.size:,} bytes")])
