"""Reading a run: all its segments and its head, without a lock and without creating anything.

A reader uses complete, valid lines only. It reads the head before the segments, and the list of segments before their
bytes, so whatever a live writer does meanwhile only adds to what the reader was promised. What still looks like damage
while a writer is at work (a page seen before the one ahead of it) does not look the same twice, so damage counts only
when two readings in a row agree on it. A head that says closed counts only if it is still the head when the segments
have been read: a log that is opened again and again would otherwise look damaged in every reading.

Whoever wants a state and not the history may accept a snapshot. Then only the segments after it are read
(`_start_point`). A snapshot never hides anything of those, and whenever what is after it does not look whole,
everything is read.
"""

import contextlib
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from eventlog import _head, _snapshot, _start_point, _tombstone
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


def scan(disk: Disk, runs: Path, run: str, accept: Callable[[Snapshot], bool] | None = None) -> Reading:
    """Read a run until damage was seen twice, or none."""
    directory = _directory(disk, runs, run)
    before: LogDamaged | None = None
    reading = Reading(run)
    with in_words(directory):
        for _ in range(_READINGS):
            reading = once(disk, directory, run, accept)
            if reading.damage is None or (before is not None and _same(before, reading.damage)):
                break
            before = reading.damage
    return reading


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


def once(disk: Disk, directory: Path, run: str, accept: Callable[[Snapshot], bool] | None = None) -> Reading:
    """Read a run's directory once and judge it. Under the lock, once is enough."""
    head = _head.read(Files(disk, directory))
    names = disk.list(directory)
    _is_a_run(directory, run, names)
    numbers = sorted(number for name in names if (number := segment_number(name)) is not None)
    strangers = sorted(name for name in names if not is_ours(name))
    refused: list[str] = []
    if accept is not None and (
        begin := _start_point.find(Files(disk, directory), run, names, numbers, accept, refused)
    ):
        snapshot = begin.snapshot
        reading = Reading(run, head=head, strangers=strangers, snapshot=snapshot, findings=refused)
        _read(disk, directory, reading, numbers, begin.chain, begin.segment)
        if reading.damage is None:
            return reading
    reading = Reading(run, head=head, strangers=strangers)
    chain = Chain(run)
    _read(disk, directory, reading, numbers, chain)
    if reading.damage is None:
        reading.damage = _against_snapshots(disk, directory, reading, chain, names)
        reading.torn = reading.torn if reading.damage is None else None  # of a damaged log nothing is only torn
    reading.findings += [finding for finding in refused if finding not in reading.findings]
    return reading


def _read(disk: Disk, directory: Path, reading: Reading, numbers: Sequence[int], chain: Chain, first: int = 1) -> None:
    """Take the lines of every segment from `first` on, compare them with the head, and say what is torn or damaged."""
    for expected, number in enumerate(numbers[first - 1 :], start=first):
        if number != expected:
            reading.damage = _damage(disk, directory, reading, chain, numbers, Segment(expected, why="it is missing"))
            return
        try:
            fd = disk.open(directory / segment_name(number))
        except NotAFile:
            bad = Segment(number, why="it is not a regular file")
            reading.damage = _damage(disk, directory, reading, chain, numbers, bad)
            return
        try:
            segment = read_segment(disk, fd, number, chain)
        finally:
            disk.close(fd)
        reading.segments.append(segment)
        reading.lines += segment.lines
        if (why := _not_whole(segment, last=number == numbers[-1])) != "":
            segment.why = why
            reading.damage = _damage(disk, directory, reading, chain, numbers, segment)
            return
    if not numbers:
        reading.damage = LogDamaged(reading.run, segment_name(1), 0, 0, 0, "the first segment is missing")
        return
    reading.damage = _against_head(disk, directory, reading, chain)
    last = reading.segments[-1]
    if reading.damage is None and last.rest > last.end:
        reading.torn = Torn(last.file, last.end, last.rest - last.end)


def _not_whole(segment: Segment, *, last: bool) -> str:
    """Say why a segment is damaged; "" when it is good, or torn where it may be."""
    if not segment.lines:
        return segment.why or "it is empty, and a segment gets its name only when its header is durable"
    if last:
        return "" if segment.torn else segment.why
    return segment.why or ("" if segment.size == segment.end else "bytes lie after the end of a sealed segment")


def _against_head(disk: Disk, directory: Path, reading: Reading, chain: Chain) -> LogDamaged | None:
    """Compare the log with its witness; an older head is normal, any other difference is damage."""
    head, last = reading.head, reading.segments[-1]
    if head is None or head.seq < 0:
        return None
    if head.seq > chain.seq:
        why = f"the head says that line {head.seq} was acknowledged, and it is gone"
        return LogDamaged(reading.run, last.file, last.end, chain.seq + 1, 0, why)
    if not _confirmed(reading, head):
        why = f"the head names another line {head.seq} than the log holds"
        after = chain.seq - head.seq
        return LogDamaged(reading.run, segment_name(max(head.segment, 1)), head.offset, head.seq, after, why)
    if head.closed and (head.seq < chain.seq or last.rest > last.end):
        if _head.read(Files(disk, directory)) != head:
            reading.head = replace(head, closed=False)
            return None
        why = "bytes lie after the end that a closed head names"
        return LogDamaged(reading.run, last.file, head.offset, head.seq + 1, chain.seq - head.seq, why)
    return None


def _against_snapshots(
    disk: Disk, directory: Path, reading: Reading, chain: Chain, names: Sequence[str]
) -> LogDamaged | None:
    """Compare the log with its snapshots, which are witnesses too: of their line, and of the header after it."""
    run, last = reading.run, reading.segments[-1]
    for snapshot in _snapshot.valid(Files(disk, directory), run, names, reading.findings):
        if snapshot.seq >= chain.seq:
            why = (
                f"a snapshot of line {snapshot.seq} was made when line {snapshot.seq + 1} was durable, and that is gone"
            )
            return LogDamaged(run, last.file, last.end, chain.seq + 1, 0, why)
        if reading.lines[snapshot.seq].sum != snapshot.sum:
            why = f"it was made of another line {snapshot.seq} than the log holds"
            return LogDamaged(run, snapshot_name(snapshot.seq), 0, snapshot.seq, chain.seq - snapshot.seq, why)
        if not _snapshot.is_made_for(snapshot, reading.lines[snapshot.seq + 1]):
            why = "its state is not the one that the header after its line names"
            return LogDamaged(run, snapshot_name(snapshot.seq), 0, snapshot.seq, chain.seq - snapshot.seq, why)
    return None


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


def _damage(
    disk: Disk,
    directory: Path,
    reading: Reading,
    chain: Chain,
    numbers: Sequence[int],
    bad: Segment,
) -> LogDamaged:
    """Make the finding for a bad place, counting the good lines in later segments too."""
    good = bad.good_after
    files = Files(disk, directory)
    for number in numbers:
        if number > bad.number:
            with contextlib.suppress(NotAFile):
                good += count_good(files.pieces(segment_name(number)))
    return LogDamaged(reading.run, bad.file, bad.end, chain.seq + 1, good, bad.why)


def _same(one: LogDamaged, other: LogDamaged) -> bool:
    return (one.file, one.offset, one.why) == (other.file, other.offset, other.why)
