"""`refold prune` and `refold salvage`: old runs are removed, and of a damaged one what is good is copied.

A tombstone keeps the id of each removed run from beginning anew. What a fork comes from stays as long as the fork may
go on, and a child run as long as its parent is there and has not ended as long ago.

What is missing of a damaged run may have had effects outside, and nobody can say which. So the copy is stopped for good
where its history ends; a run that was done stays done. The damaged one is not touched.
"""

import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

import eventlog
import replay
import runner
from replay.events import RunForked, RunStopped
from runner._cli import options
from runner._cli._io import errors, out
from runner._cli._io.errors import Refused, Status

AT_ONCE = 100
"""Runs that a store is told to remove together."""


@click.command()
@options.runs
@options.aged("--older-than", help="Remove the runs that ended longer ago: 90s, 15m, 2h, 7d.")
@options.aged("--forget", help="Free the ids of removed runs that ended longer ago than this.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed, and freed.")
def prune(runs: str, *, older_than: timedelta | None, forget: timedelta | None, dry_run: bool) -> None:
    """Remove runs that ended: done, or stopped for good.

    Each leaves a tombstone, so that a request delivered again begins nothing anew. Give --forget more than the time in
    which requests are delivered again, and more than every key_ttl.
    """
    if older_than is None and forget is None:
        raise click.UsageError("give --older-than AGE, --forget AGE, or both")
    store, now, had = eventlog.store(options.existing(runs)), datetime.now(UTC), {int(Status.FINISHED)}
    ended = _ended(store, now - older_than) if older_than is not None else {}
    for run, problem in dict.fromkeys(sorted(ended)).items() if dry_run else _pruned(store, ended):
        if problem is None:
            out.out(f"{'would prune' if dry_run else 'pruned'} {run}")
        elif not isinstance(problem, eventlog.RunPruned):  # else another pruning took it in the meantime
            errors.say(problem)
            had.add(errors.status(problem))
    for run in store.forget(now - forget, dry=dry_run) if forget is not None else ():
        out.out(f"{'would forget' if dry_run else 'forgot'} {run}")
    errors.leave(next(worst for worst in errors.WORST_FIRST if worst in had))


def _ended(store: eventlog.Store, before: datetime) -> dict[str, dict[str, str]]:
    """The runs that ended before a time, which no fork needs that may go on, and what their tombstones say."""
    names, parents = set(store.names()), store.parents()
    ended, needed, child_of = dict[str, dict[str, str]](), set[str](), dict[str, str]()
    for info in runner.list_runs(store, names):
        status, run = info.status, info.run
        if status is not None and status.parent_call is not None:
            child_of[run] = status.parent_call.run
        if status is None or not status.closed:
            while (parent := parents.get(run)) is not None and parent not in needed:
                needed.add(parent)
                run = parent
        elif status.at is not None and status.at < before:
            ended[run] = {"uid": status.uid, "answer": status.answer}

    def is_over(run: str) -> bool:
        """Whether the run that this is a child of, directly or not, ended too: until then its result may be asked."""
        seen = set[str]()
        while run in child_of and run not in seen:  # a status is only as honest as whoever wrote it
            seen.add(run)
            run = child_of[run]
        return run not in child_of and (run in ended or run not in names)

    return {run: facts for run, facts in ended.items() if run not in needed and is_over(run)}


def _pruned(store: eventlog.Store, ended: dict[str, dict[str, str]]) -> Iterator[tuple[str, eventlog.LogError | None]]:
    names = sorted(ended)
    for first in range(0, len(names), AT_ONCE):
        yield from store.prune({run: ended[run] for run in names[first : first + AT_ONCE]})


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
@options.says
@click.argument("new", metavar="NEW")
def salvage(run: str, new: str, runs: str, *, who: str) -> None:
    """Copy what is good of the damaged RUN into the run NEW.

    NEW is stopped for good: it can be read, not carried on. RUN stays as it is.
    """
    store = eventlog.store(runs)
    reading = store.scan(run)
    if reading.damage is None and all(map(History(), reading.lines)):
        raise Refused(f"run {run} is not damaged", f"`refold show {run}` says how far it came.")
    history = History()
    with store.salvage(run, new, follows=history) as log:
        header = log.lines[0].header
        assert header is not None
        assert header.salvaged is not None
        _stop(log, history.state, header.salvaged, new, who)
        out.rows(_page(header.salvaged, new))


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
