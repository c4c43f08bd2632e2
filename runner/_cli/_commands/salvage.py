"""`refold salvage`: what is good of a damaged run, copied into a new one that can be read and is never carried on.

What is missing may have had effects outside, and nobody can say which. So the new run is stopped for good where
its history ends; a run that was done stays done. The damaged one is not touched.
"""

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime

import click

import eventlog
import replay
from replay.events import RunForked, RunStopped
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused


class History:
    """The history so far, asked line by line whether the next one still belongs to it."""

    def __init__(self) -> None:
        self.state = replay.NEW

    def __call__(self, line: eventlog.Line) -> bool:
        """Whether the fold allows the events of this line here."""
        try:
            self.state = replay.load([line], self.state)
        except replay.ReplayError:
            return False
        return True


@click.command()
@options.run
@click.argument("new", metavar="NEW")
@options.runs
@options.by
def salvage(run: str, new: str, runs: str, *, who: str) -> None:
    """Copy what is good of the damaged RUN into the run NEW.

    NEW is stopped for good: it can be read, not carried on. RUN stays as it is.
    """
    store = eventlog.store(runs)
    reading = store.scan(run)
    if reading.damage is None and all(map(History(), reading.lines)):
        raise Refused(f"run {run} is not damaged", f"`refold resume {run}` carries it on.")
    history = History()
    with store.salvage(run, new, follows=history) as log:
        header = log.lines[0].header
        assert header is not None
        assert header.salvaged is not None
        _stop(log, history.state, header.salvaged, new, who)
        out.rows(list(_page(header.salvaged, new)))


def _stop(log: eventlog.Log, state: replay.State, salvaged: eventlog.Salvaged, new: str, who: str) -> None:
    """Say in the new run's own log that it is another run, and that it goes no further."""
    if state.phase in ("new", "done"):
        return
    forked = RunForked(run=new, parent=salvaged.run, seq=state.seq, host=socket.gethostname(), pid=os.getpid())
    detail = f"salvaged from the damaged run {salvaged.run} by {who}; what is missing may have happened"
    stopped = RunStopped(reason="StoppedByPerson", final=True, detail=detail)
    log.append(datetime.now(UTC), [replay.encode(forked), replay.encode(stopped)])


def _page(salvaged: eventlog.Salvaged, new: str) -> Iterator[out.Row]:
    yield "from", salvaged.run
    yield "to", new
    yield "copied", f"{salvaged.lines} lines"
    for gap in salvaged.gaps:
        upto = "its end" if gap.before is None else f"line {gap.before}"
        yield "gap", f"between line {gap.after} and {upto}: {gap.why}"
