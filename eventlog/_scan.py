"""Reading a run: all its segments and its head, without a lock and without creating anything.

A reader uses complete, valid lines only. It reads the head before the segments, and the list of segments before their
bytes, so whatever a live writer does meanwhile only adds to what the reader was promised. What still looks like damage
while a writer is at work (a page seen before the one ahead of it) does not look the same twice, so damage counts only
when two readings in a row agree on it. A head that says closed counts only if it is still the head when the segments
have been read: a log that is opened again and again would otherwise look damaged in every reading.

Whoever wants a state and not the history may accept a snapshot. Then only the segments after it are read
(`_listing`). A snapshot never hides anything of those, and whenever what is after it does not look whole,
everything is read.
"""

import contextlib
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from eventlog import _head, _listing, _snapshot, _tombstone
from eventlog._disk import Disk, NotAFile
from eventlog._files import Files
from eventlog._head import Head
from eventlog._line import Line, Storage, Torn
from eventlog._names import check_id, is_ours, makes_a_run, segment_name, segment_number, snapshot_name
from eventlog._os_errors import reading as in_words
from eventlog._segment import Chain, Segment, count_good, read_segment
from eventlog._snapshot import Snapshot
from eventlog.errors import LogDamaged, NoSuchRun, NotARunsDirectory

_READINGS: Final = 20
Accept = Callable[[Snapshot], bool]


class _Judged(Protocol):
    @property
    def damage(self) -> LogDamaged | None: ...


Found = TypeVar("Found", bound=_Judged)


class Reading(msgspec.Struct):
    """What a run's directory holds. `lines` are the good ones from the first on, header lines included.

    `torn` is a save that never finished (on a live run: perhaps one that is being written). `damage` is what `read`
    would raise. `head` is the witness, None when missing or unreadable. `snapshot` is the one that was accepted: then
    `lines` and `segments` are only those after it. `findings` say which snapshots were passed over, and why.
    `strangers` are files that are not ours.
    """

    run: str
    lines: list[Line] = []
    torn: Torn | None = None
    damage: LogDamaged | None = None
    head: Head | None = None
    segments: list[Segment] = []
    strangers: list[str] = []
    snapshot: Snapshot | None = None
    findings: list[str] = []

    @property
    def closed(self) -> bool:
        """Whether the head says that the last line was the last, and no byte, not even a NUL, lies after it."""
        return (
            self.damage is None
            and self.head is not None
            and self.head.closed
            and self.segments[-1].size == self.segments[-1].end
        )

    @property
    def storage(self) -> Storage | None:
        """What the log stood on when it was created; None when not even its header can be read."""
        header = self.lines[0].header if self.lines else None
        return header.storage if header else None


def scan(disk: Disk, runs: Path, run: str, accept: Accept | None = None) -> Reading:
    """Read a run until damage was seen twice, or none."""
    directory = _directory(disk, runs, run)
    with in_words(directory):
        return steady(lambda: once(disk, directory, run, accept))


def steady(read: Callable[[], Found]) -> Found:
    """Read again and again until damage was seen twice in a row, or none."""
    found = read()
    for _ in range(_READINGS):
        if (before := found.damage) is None:
            break
        found = read()
        now = found.damage
        if now is not None and (now.file, now.offset, now.why) == (before.file, before.offset, before.why):
            break
    return found


def place(disk: Disk, runs: Path, run: str) -> Path:
    """Find a run's directory. Raises `BadRunId` first, then `NotARunsDirectory`, then `NoSuchRun`."""
    directory = _directory(disk, runs, run)
    with in_words(directory):
        _is_a_run(directory, run, disk.list(directory))
    return directory


def _directory(disk: Disk, runs: Path, run: str) -> Path:
    """Find the directory of that name, whether or not it is a run."""
    check_id(run)
    directory = runs / run
    with in_words(directory):
        try:
            found = disk.stat(directory)
            if not stat.S_ISDIR(found.st_mode):
                raise NoSuchRun(run, str(runs), "what has that name is not a directory")
        except FileNotFoundError:
            raise _tombstone.missing(disk, runs, run) from None
        except NotADirectoryError:
            raise NotARunsDirectory(str(runs), "it is not a directory") from None
    return directory


def _is_a_run(directory: Path, run: str, names: Sequence[str]) -> None:
    if not any(makes_a_run(name) for name in names):
        raise NoSuchRun(run, str(directory.parent), "the directory of that name never became a run")


def once(disk: Disk, directory: Path, run: str, accept: Accept | None = None) -> Reading:
    """Read a run's directory once and judge it. Under the lock, once is enough."""
    files = Files(disk, directory)
    head = _head.read(files)
    names = disk.list(directory)
    _is_a_run(directory, run, names)
    numbers = sorted(number for name in names if (number := segment_number(name)) is not None)
    strangers = sorted(name for name in names if not is_ours(name))
    refused: list[str] = []
    if accept is not None and (begin := _listing.find(files, run, names, numbers, accept, refused)):
        snapshot, segment = begin
        reading = Reading(run, head=head, strangers=strangers, snapshot=snapshot, findings=refused)
        _Scan(disk, files, reading, numbers, Chain(run, snapshot.seq, snapshot.sum, life=0)).read(segment)
        if reading.damage is None:
            return reading
    reading = Reading(run, head=head, strangers=strangers)
    whole = _Scan(disk, files, reading, numbers, Chain(run))
    whole.read(1)
    if reading.damage is None:
        reading.damage = whole.against_snapshots(names)
        reading.torn = reading.torn if reading.damage is None else None  # of a damaged log nothing is only torn
    reading.findings += [finding for finding in refused if finding not in reading.findings]
    return reading


class _Scan:
    """One reading as it goes on: the files, and the chain that their lines make."""

    def __init__(self, disk: Disk, files: Files, reading: Reading, numbers: Sequence[int], chain: Chain) -> None:
        self._disk, self._files, self._reading, self._numbers, self._chain = disk, files, reading, numbers, chain

    def read(self, first: int) -> None:
        """Take the lines of every segment from `first` on, compare them with the head, say what is torn or damaged."""
        reading = self._reading
        for expected, number in enumerate(self._numbers[first - 1 :], start=first):
            if number != expected:
                segment = Segment(expected, why="it is missing")
            else:
                try:
                    with self._files.opened(segment_name(number)) as fd:
                        segment = read_segment(self._disk, fd, number, self._chain)
                except NotAFile:
                    segment = Segment(number, why="it is not a regular file")
                else:
                    reading.segments.append(segment)
                    reading.lines += segment.lines
                    segment.why = _not_whole(segment, last=number == self._numbers[-1])
            if segment.why:
                reading.damage = self._damage(segment)
                return
        if not self._numbers:
            reading.damage = LogDamaged(reading.run, segment_name(1), 0, 0, 0, "the first segment is missing")
            return
        reading.damage = self._against_head()
        last = reading.segments[-1]
        if reading.damage is None and last.rest > last.end:
            reading.torn = Torn(last.file, last.end, last.rest - last.end)

    def against_snapshots(self, names: Sequence[str]) -> LogDamaged | None:
        """Compare the log with its snapshots, which are witnesses too: of their line, and of the header after it."""
        reading, seq = self._reading, self._chain.seq
        for snapshot in _snapshot.valid(self._files, reading.run, names, reading.findings):
            at = snapshot.seq
            if at >= seq:
                return self._gone(f"a snapshot of line {at} was made when line {at + 1} was durable, and that is gone")
            if reading.lines[at].sum != snapshot.sum:
                why = f"it was made of another line {at} than the log holds"
                return LogDamaged(reading.run, snapshot_name(at), 0, at, seq - at, why)
            if not _snapshot.is_made_for(snapshot, reading.lines[at + 1]):
                why = "its state is not the one that the header after its line names"
                return LogDamaged(reading.run, snapshot_name(at), 0, at, seq - at, why)
        return None

    def _against_head(self) -> LogDamaged | None:
        """Compare the log with its witness; an older head is normal, any other difference is damage."""
        reading, seq = self._reading, self._chain.seq
        head, last = reading.head, reading.segments[-1]
        if head is None or head.seq < 0:
            return None
        if head.seq > seq:
            return self._gone(f"the head says that line {head.seq} was acknowledged, and it is gone")
        if not _confirmed(reading, head):
            why = f"the head names another line {head.seq} than the log holds"
            file = segment_name(max(head.segment, 1))
            return LogDamaged(reading.run, file, head.offset, head.seq, seq - head.seq, why)
        if head.closed and (head.seq < seq or last.rest > last.end):
            if _head.read(self._files) != head:
                reading.head = replace(head, closed=False)
                return None
            why = "bytes lie after the end that a closed head names"
            return LogDamaged(reading.run, last.file, head.offset, head.seq + 1, seq - head.seq, why)
        return None

    def _gone(self, why: str) -> LogDamaged:
        last = self._reading.segments[-1]
        return LogDamaged(self._reading.run, last.file, last.end, self._chain.seq + 1, 0, why)

    def _damage(self, bad: Segment) -> LogDamaged:
        """Make the finding for a bad place, counting the good lines in later segments too."""
        good = bad.good_after
        for number in self._numbers:
            if number > bad.number:
                with contextlib.suppress(NotAFile):
                    good += count_good(self._files.pieces(segment_name(number)))
        return LogDamaged(self._reading.run, bad.file, bad.end, self._chain.seq + 1, good, bad.why)


def _not_whole(segment: Segment, *, last: bool) -> str:
    """Say why a segment is damaged; "" when it is good, or torn where it may be."""
    if not segment.lines:
        return segment.why or "it is empty, and a segment gets its name only when its header is durable"
    if last:
        return "" if segment.torn else segment.why
    return segment.why or ("" if segment.size == segment.end else "bytes lie after the end of a sealed segment")


def _confirmed(reading: Reading, head: Head) -> bool:
    """Whether the log holds the very line the head names, at the place it names."""
    first = reading.lines[0].seq
    if reading.snapshot is not None and head.seq < first:  # what the snapshot stands for was not read, but for one sum
        return head.seq < reading.snapshot.seq or head.sum == reading.snapshot.sum
    if reading.lines[head.seq - first].sum != head.sum:
        return False
    for segment in reading.segments:
        if segment.number == head.segment:
            index = head.seq - segment.lines[0].seq
            return 0 <= index < len(segment.ends) and segment.ends[index] == head.offset
    return False
