"""Reading a run's rows: its lines as a log, and its rows as the files that a directory would hold.

A reader sees one moment of a run: all that it reads is of one transaction. The run's row is the witness of the last
acknowledged line, as the head is in a directory. Snapshots are no files here: only a header could vouch for them, and
there is none. One counts when it is whole and the line that it names has its sum.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from eventlog import _head, _snapshot
from eventlog._files import CHUNK, Files
from eventlog._frame import parse
from eventlog._head import Head
from eventlog._names import HEAD, segment_name
from eventlog._scan import Accept, Reading
from eventlog._segment import Chain, Segment, is_good
from eventlog._snapshot import Snapshot
from eventlog.errors import LogDamaged
from eventlog.postgres import _prune
from eventlog.postgres._connections import Connections
from eventlog.postgres._place import Connection

_ROWS: Final = 256
"""Lines that are read at a time where not all are."""
_END: Final = "select seq, sum, life, at, bytes, owner is null from refold.run where run = %s"
_SNAPSHOTS: Final = """
select s.seq, s.data, l.data from refold.snapshot s left join refold.line l using (run, seq)
where s.run = %s order by s.seq desc"""


class End(NamedTuple):
    """What a run's row says of the end of its log. `free`: whoever held it gave it back."""

    seq: int
    sum: str
    life: int
    at: datetime
    bytes: int
    free: bool

    def head(self) -> Head:
        """The head that a directory would have."""
        return Head(self.seq, self.sum, 1, self.bytes, closed=self.free)


def load(connection: Connection, run: str, end: End, accept: Accept | None = None) -> tuple[Reading, int]:
    """Read a run up to its end, after the newest snapshot that is accepted; the second is the bytes read."""
    reading = Reading(run, head=end.head())
    if accept is not None:
        reading.snapshot = _accepted(connection, run, accept, reading.findings)
    chain = Chain(run)
    if (snapshot := reading.snapshot) is not None:
        chain = Chain(run, snapshot.seq, snapshot.sum, life=0)
    query = "select data from refold.line where run = %s and seq > %s order by seq"
    _take(reading, chain, (row[0] for row in connection.execute(query, (run, chain.seq)).fetchall()))
    if reading.damage is None:
        reading.damage = _against_end(reading, chain, end)
    if reading.damage is not None and reading.snapshot is not None:
        return load(connection, run, end)  # reading everything finds out
    return reading, reading.segments[0].end


def _take(reading: Reading, chain: Chain, rows: Iterable[bytes]) -> None:
    segment = Segment(1)
    for data in rows:
        segment.size += len(data)
        if segment.why or not segment.take(data, chain, first=chain.seq < 0):
            segment.good_after += is_good(data)
    segment.rest = segment.size
    reading.segments, reading.lines = [segment], segment.lines
    if segment.why:
        reading.damage = _damage(reading, chain, segment.why)


def _against_end(reading: Reading, chain: Chain, end: End) -> LogDamaged | None:
    if end.seq > chain.seq:
        return _damage(reading, chain, f"the run's row says that line {chain.seq + 1} was acknowledged, and it is gone")
    if end.seq < chain.seq:
        return _damage(reading, chain, f"lines follow line {end.seq}, the last that the run's row names")
    return None if end.sum == chain.sum else _damage(reading, chain, f"the run's row names another line {end.seq}")


def _damage(reading: Reading, chain: Chain, why: str) -> LogDamaged:
    segment = reading.segments[0]
    return LogDamaged(reading.run, segment.file, segment.end, chain.seq + 1, segment.good_after, why)


def _accepted(connection: Connection, run: str, accept: Accept, findings: list[str]) -> Snapshot | None:
    for seq, data, line in connection.execute(_SNAPSHOTS, (run,)).fetchall():
        snapshot = _snapshot.decode(data)
        if snapshot is None or (snapshot.run, snapshot.seq) != (run, seq):
            findings.append(f"the snapshot of line {seq} is unreadable, and was passed over")
        elif line is None or not is_good(line) or parse(line).sum != snapshot.sum:
            findings.append(f"the snapshot of line {seq} was made of another line, and was passed over")
        elif accept(snapshot):
            return snapshot
        else:
            findings.append(f"the snapshot of line {seq} (version {snapshot.version}) was passed over")
    return None


def scan(connections: Connections, run: str, accept: Accept | None) -> Reading:
    """Read the row, the snapshot and the lines of a run, all in one transaction. Raises `NoSuchRun`."""

    def act(connection: Connection) -> Reading | None:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read read only")
            row = connection.execute(_END, (run,)).fetchone()
            return load(connection, run, End(*row), accept)[0] if row is not None else None

    reading = connections.run(act)
    if reading is None:
        raise _prune.missing(connections, run)
    return reading


class Rows(Files):
    """The rows of a run as files: one segment, and a head that says what its row says."""

    def __init__(self, connections: Connections, run: str) -> None:
        """Look at a run; raises `NoSuchRun`."""
        self._connections, self._run = connections, run
        self._end()

    def names(self) -> list[str]:
        return [segment_name(1), HEAD]

    def pieces(self, name: str, start: int = 0, end: int | None = None, *, size: int = CHUNK) -> Iterator[bytes]:
        at = 0
        for data in [_head.encode(self._end().head())] if name == HEAD else self._rows(name, size):
            part = data[max(start - at, 0) : None if end is None else max(end - at, 0)]
            at += len(data)
            if part:
                yield part
            if end is not None and at >= end:
                return

    def end(self, name: str, size: int) -> bytes:
        return b"".join(self.pieces(name))[-size:]

    def _rows(self, name: str, size: int) -> Iterator[bytes]:
        if name != segment_name(1):
            raise FileNotFoundError(name)
        query = "select seq, data from refold.line where run = %s and seq > %s order by seq limit %s"
        last, limit = -1, 1 if size < CHUNK else _ROWS
        while True:
            found = self._connections.rows(query, (self._run, last, limit))
            for last, data in found:  # noqa: B007 (where the next batch begins)
                yield data
            if len(found) < limit:
                self._end()  # a run that was pruned meanwhile has not ended here
                return

    def _end(self) -> End:
        found = self._connections.rows(_END, (self._run,))
        if not found:
            raise _prune.missing(self._connections, self._run)
        return End(*found[0])
