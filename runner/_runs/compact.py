"""Compact: a snapshot of a run's state by hand, made from every event and never from an older snapshot."""

import eventlog
import replay
from runner._runs import load


def compact(run: str, *, runs: eventlog.Runs) -> eventlog.Snapshot:
    """Keeps a snapshot of a run's state: the next resume need not begin at its first event. No event is removed.

    A run that is carried on does this by itself when its log has grown.

    Args:
        run: The run.
        runs: Where the runs are: a path, a URL, or a store.

    Returns:
        The snapshot: the line it stands for, and its size in bytes.

    Raises:
        eventlog.RunLocked: A process is running it.
        eventlog.LogError: It can't be read, or the snapshot can't be written; the run is as it was.
    """
    with load.held(eventlog.store(runs), run) as log:
        snapshot = log.compact(replay.dump(replay.load(log.lines)), replay.FOLD_VERSION)
    assert snapshot is not None
    return snapshot
