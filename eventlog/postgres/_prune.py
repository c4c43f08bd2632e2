"""Pruning a database: one statement removes runs and inserts their tombstones, so there is always one of the two.

A tombstone is the bytes that a directory would keep. Nobody needs to open a run for that: the statement passes over
what is held, and what has a line or a request more since it was looked at.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from eventlog import _tombstone
from eventlog._lock import Holder
from eventlog._names import check_id, is_id
from eventlog._tombstone import Tombstone
from eventlog.errors import BadRunId, LogError, NoSuchRun, RunLocked, RunPruned
from eventlog.postgres._connections import Connections
from eventlog.postgres._place import unhurried

_LOOK: Final = "select run, seq, sum, at, parent, mail from refold.run where run = any(%s)"
_PRUNE: Final = """
with given as (select *
  from unnest(%(runs)s::text[], %(sums)s::text[], %(mails)s::int[], %(datas)b::bytea[]) as g (run, sum, mail, data)),
gone as (delete from refold.run r using given g
  where r.run = g.run and r.sum = g.sum and r.mail = g.mail and (r.owner is null or r.expires < clock_timestamp())
  returning r.run, r.at, r.parent, g.data),
lines as (delete from refold.line l using gone where l.run = gone.run),
snapshots as (delete from refold.snapshot s using gone where s.run = gone.run),
requests as (delete from refold.inbox i using gone where i.run = gone.run)
insert into refold.pruned select run, at, parent, data from gone returning run"""
_FORGET: Final = "delete from refold.pruned where ended < %s returning run"


def prune(
    connections: Connections, ended: Mapping[str, dict[str, str]], holder: Callable[[str], Holder | None]
) -> Iterator[tuple[str, LogError | None]]:
    """Remove runs, each leaving a tombstone with these words; give each with what kept it here, or None."""
    given: dict[str, list[Any]] = {"runs": [], "sums": [], "mails": [], "datas": []}
    for run, seq, total, at, parent, mail in connections.rows(_LOOK, (list(filter(is_id, ended)),)):
        data = _tombstone.encode(run, seq, Tombstone(at=at, sum=total, parent=parent, words=ended[run]))
        for values, value in zip(given.values(), (run, total, mail, data), strict=True):
            values.append(value)
    seen, gone = set(given["runs"]), {row[0] for row in connections.run(functools.partial(unhurried, _PRUNE, given))}
    for run in ended:
        try:
            check_id(run)
        except BadRunId as error:
            yield run, error
            continue
        problem: LogError | None = None if run in gone else missing(connections, run)
        if isinstance(problem, RunPruned) and run in seen:
            problem = None  # a connection that broke has hidden that it was done
        elif problem is not None and run in seen:
            held = holder(run)
            if held is not None:
                problem = RunLocked(run, held.pid, held.host, held.since)
            else:  # whoever held it has gone since, unless it has a line or a request more
                again = connections.run(functools.partial(unhurried, _PRUNE, given))
                problem = None if run in {row[0] for row in again} else RunLocked(run, None, "", None)
        yield run, problem


def forget(connections: Connections, before: datetime, *, dry: bool) -> list[str]:
    """Remove the tombstones of runs that ended before a time, unless `dry`; give their ids."""
    query = "select run from refold.pruned where ended < %s" if dry else _FORGET
    return [row[0] for row in connections.run(functools.partial(unhurried, query, (before,)))]


def missing(connections: Connections, run: str) -> NoSuchRun:
    """Give the error for a run that is not there: it was pruned, or never was."""
    place = str(connections.place)
    found = connections.rows("select data from refold.pruned where run = %s", (run,))
    return _tombstone.pruned(run, place, _tombstone.decode(run, found[0][0])) if found else NoSuchRun(run, place)
