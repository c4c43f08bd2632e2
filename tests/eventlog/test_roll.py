"""Rolls and snapshots being written: in an order that a death anywhere survives, and a full disk hurts nobody."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from typing import TYPE_CHECKING, Any

import pytest

import eventlog
from eventlog import _names, simdisk
from tests.eventlog.making import AT, OPENING, event, goes_on, lines_of, made, numbers, segment
from tests.support.disks import Failing, Traced, failing
from tests.support.file_logs import roll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.forkserver import ForkServer

ONE, TWO, SNAP = "seg-000001.jsonl", "seg-000002.jsonl", "snap-1.json"
ROLL = [
    ("open", f".tmp-{TWO}"),
    ("write_some", f".tmp-{TWO}"),
    ("write_some", f".tmp-{TWO}"),
    ("sync", f".tmp-{TWO}"),
    ("truncate", ONE),
    ("sync", ONE),
    ("rename", TWO),
    ("sync_dir", "r"),
    ("write_some", "head"),
]
KEEP = [
    ("open", f".tmp-{SNAP}"),
    ("write_some", f".tmp-{SNAP}"),
    ("sync", f".tmp-{SNAP}"),
    ("rename", SNAP),
    ("sync_dir", "r"),
]
STATE = b'{"n":1}'


def begun(runs: Path, disk: Traced | None = None) -> eventlog.Log:
    """Make a log with an opening line."""
    return eventlog.Directory(runs, disk=disk or Traced()).create("r", at=AT, events=[OPENING])


def test_a_roll_seals_before_the_next_name_appears(tmp_path: Path) -> None:
    """A reader that sees the next segment takes the end of this one for final, so the cut is durable first."""
    disk = Traced()
    log = begun(tmp_path, disk)
    disk.steps.clear()
    roll(log)
    assert disk.steps == ROLL
    assert segment(tmp_path).read_bytes().endswith(b"}\n")
    first, _, line = eventlog.store(tmp_path).read("r").lines
    assert line.header is not None
    assert (line.seq, line.header.segment, line.header.nonce) == (2, 2, first.header and first.header.nonce)
    log.append(AT, [event(1)])
    log.close()
    assert lines_of(segment(tmp_path, number=2))[0].startswith(b'{"seq":2,')
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert eventlog.store(tmp_path).read("r").closed
    goes_on(tmp_path)


def test_a_snapshot_is_written_behind_a_roll(tmp_path: Path) -> None:
    """Its line is durable, and the segment after it begun, before a snapshot can say so."""
    disk = Traced()
    log = begun(tmp_path, disk)
    disk.steps.clear()
    assert log.compact(STATE, 7) == eventlog.Snapshot(
        "r", 1, eventlog.store(tmp_path).read("r").lines[1].sum, 7, STATE, (tmp_path / "r" / SNAP).stat().st_size
    )
    assert disk.steps == ROLL + KEEP


def test_the_last_two_snapshots_are_kept_and_every_segment(tmp_path: Path) -> None:
    """A segment is the audit; a snapshot is a cache, and the one before the last is for when the last is rotten."""
    log = begun(tmp_path)
    for number in range(4):
        log.compact(b"%d" % number, 1)
    log.close()
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert {name for name in names if name.startswith("snap-")} == {"snap-3.json", "snap-4.json"}
    assert sum(name.startswith("seg-") for name in names) == 5
    assert numbers(tmp_path) == list(range(6))


def test_bytes_since_the_last_snapshot_are_counted_over_rolls_and_openings(tmp_path: Path) -> None:
    """They decide when the next one is due."""
    log = begun(tmp_path)
    before = log.bytes_since_snapshot
    assert before == sum(map(len, lines_of(segment(tmp_path))))
    roll(log)
    assert log.bytes_since_snapshot == before + len(lines_of(segment(tmp_path, number=2))[0])
    log.compact(STATE, 1)
    last = len(segment(tmp_path, number=3).read_bytes().rstrip(b"\0"))
    assert log.bytes_since_snapshot == last
    roll(log)
    since = log.bytes_since_snapshot
    log.close()
    with eventlog.store(tmp_path).open("r", accept=lambda _: True) as again:
        assert again.bytes_since_snapshot == since
    with eventlog.store(tmp_path).open("r") as again:
        assert again.bytes_since_snapshot > since + before


@pytest.mark.fault("killed between two operations")
@pytest.mark.parametrize("at", range(len(ROLL + KEEP)))
def test_sigkill_between_any_two_operations(tmp_path: Path, at: int) -> None:
    """Whatever was done of a compaction, the log is whole, and goes on."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    disk.at, disk.error, disk.lasting, disk.count = at, simdisk.Killed(), True, -1
    with pytest.raises(simdisk.Killed):
        log.compact(STATE, 1)
    disk.error = None
    log.abandon()
    reading = eventlog.store(tmp_path).read("r")
    assert [line.seq for line in reading.lines] == ([0, 1] if at <= ROLL.index(("rename", TWO)) else [0, 1, 2])
    assert eventlog.store(tmp_path).verify("r").ok
    goes_on(tmp_path)
    assert not [path for path in (tmp_path / "r").iterdir() if path.name.startswith(".tmp-")]


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("at", range(len(ROLL + KEEP)))
def test_an_error_of_any_operation(tmp_path: Path, at: int, number: int) -> None:
    """Until the old segment is cut nothing has happened, and after the roll nothing can; in between nobody knows."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    disk.at, disk.error, disk.count = at, failing(number), -1
    step = (ROLL + KEEP)[at]
    if step == ("write_some", "head"):  # a witness that is older is normal
        assert log.compact(STATE, 1) is not None
        log.append(AT, [event(5)])
    elif ROLL.index(("truncate", ONE)) <= at < len(ROLL):
        with pytest.raises(eventlog.LogDead):
            log.compact(STATE, 1)
        with pytest.raises(eventlog.LogDead):
            log.append(AT, [event(5)])
    else:
        with pytest.raises(eventlog.DiskFailed if number == errno.EIO else eventlog.DiskFull):
            log.compact(STATE, 1)
        log.append(AT, [event(5)])
        log.compact(STATE, 1)
    assert disk.failed == " ".join(step)
    log.close()
    assert eventlog.store(tmp_path).verify("r").ok
    goes_on(tmp_path)


@pytest.mark.fault("full disk in a roll")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOSPC, errno.EACCES])
def test_a_next_segment_that_cannot_be_made_leaves_the_zeros_of_the_last_one(tmp_path: Path, number: int) -> None:
    """A segment that was cut would grow again over whatever a deleted file left there."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    before = segment(tmp_path).read_bytes()
    disk.at, disk.error, disk.count, disk.lasting = 0, failing(number), -1, True
    for _ in range(3):
        with pytest.raises((eventlog.DiskFull, eventlog.DiskFailed)):
            roll(log)
    assert segment(tmp_path).read_bytes() == before
    disk.error = None
    log.append(AT, [event(5)])
    log.close()
    goes_on(tmp_path)


def compacts_with_one_descriptor(runs: str) -> int:
    """Compact a log in a process that may open one file more, and no second one; give the snapshot's line."""
    log = eventlog.store(runs).create("r", at=AT, events=[OPENING])
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    held: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    os.close(held.pop())
    snapshot = log.compact(STATE, 1)
    log.append(AT, [event(5)])
    return -1 if snapshot is None else snapshot.seq


def test_a_roll_needs_no_descriptor_but_the_next_segments(tmp_path: Path, forks: ForkServer) -> None:
    """Once that has its name, one that is missing would leave the writer dead."""
    assert forks.run(compacts_with_one_descriptor, runs=tmp_path).value == 1
    assert numbers(tmp_path) == [0, 1, 2, 3]


@pytest.mark.fault("stolen lock")
def test_a_roll_of_a_log_whose_lock_is_lost_puts_no_segment_into_the_other_writers_log(tmp_path: Path) -> None:
    """The lock may go while the next segment is being written; it is checked just before that gets its name."""

    class Thief(Traced):
        other: eventlog.Log | None = None

        def after(self, verb: str, name: str) -> None:
            if (verb, name) == ("sync", f".tmp-{TWO}") and self.other is None:
                (tmp_path / "r" / "lock").unlink()
                self.other = eventlog.store(tmp_path).open("r")

    disk = Thief()
    log = begun(tmp_path, disk)
    with pytest.raises(eventlog.LockLost):
        roll(log)
    assert disk.other is not None
    assert not segment(tmp_path, number=2).exists()
    disk.other.append(AT, [event(5)])
    disk.other.close()
    log.close()
    assert eventlog.store(tmp_path).verify("r").ok


@pytest.mark.fault("leaked descriptor")
def test_a_head_that_fails_after_a_roll_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """The segment that was sealed is closed whatever happens next."""

    class Counting(Failing):
        def __init__(self) -> None:
            super().__init__(-1, None)
            self.descriptors: set[int] = set()

        def open(self, *args: Any, **options: Any) -> int:
            fd = super().open(*args, **options)
            self.descriptors.add(fd)
            return fd

        def close(self, fd: int) -> None:
            self.descriptors.discard(fd)
            super().close(fd)

    disk = Counting()
    log = begun(tmp_path, disk)
    held = len(disk.descriptors)
    disk.at, disk.error, disk.count = ROLL.index(("write_some", "head")), failing(errno.EIO), -1
    roll(log)
    assert len(disk.descriptors) == held
    log.close()
    assert disk.descriptors == set()


@pytest.mark.fault("interrupted save")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), failing(errno.EIO)])
def test_an_interrupt_in_a_roll_leaves_the_writer_dead(tmp_path: Path, error: BaseException) -> None:
    """Not half alive, with two segments that could both be the last."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    disk.at, disk.error, disk.count = 6, error, -1
    with pytest.raises((KeyboardInterrupt, eventlog.LogDead)):
        roll(log)
    for act in (lambda: roll(log), lambda: log.append(AT, [event(1)]), lambda: log.compact(STATE, 1)):
        with pytest.raises(eventlog.LogDead):
            act()
    log.close()
    assert eventlog.store(tmp_path).verify("r").ok


@pytest.mark.parametrize("state", [b"", b"{", b'{"a":1}}', b"1 2", b'"\xff"', b'1,"state":2'])
def test_a_state_that_does_not_read_back_is_refused_with_nothing_done(tmp_path: Path, state: bytes) -> None:
    """A snapshot that nobody can read would cost its time again and again."""
    disk = Traced()
    log = begun(tmp_path, disk)
    disk.steps.clear()
    with pytest.raises(eventlog.NotStorable):
        log.compact(state, 1)
    assert disk.steps == []
    log.append(AT, [event(1)])
    log.close()


def test_a_state_that_is_behind_the_log_is_not_kept(tmp_path: Path) -> None:
    """Another thread saved a line since: a snapshot of that line would leave its events out for ever."""
    log = begun(tmp_path)
    seq = log.seq
    log.append(AT, [event(1)])
    assert log.compact(STATE, 1, seq=seq) is None
    assert log.compact(STATE, 1, seq=log.seq) is not None
    log.close()


@pytest.mark.fault("lock file replaced")
def test_a_closed_log_and_a_lost_lock_are_not_rolled(tmp_path: Path) -> None:
    """A writer that is none any more must not bring a segment into a log that has another writer."""
    log = begun(tmp_path)
    (tmp_path / "r" / "lock").unlink()
    with pytest.raises(eventlog.LockLost):
        roll(log)
    assert not segment(tmp_path, number=2).exists()
    log.close()
    with pytest.raises(eventlog.LogDead):
        log.compact(STATE, 1)


@pytest.mark.fault("lock file replaced")
def test_a_lock_lost_within_a_roll_is_noticed_before_anything_is_promised(tmp_path: Path) -> None:
    """Another writer may have begun meanwhile, and knows nothing of the new segment."""

    class Stealing(Traced):
        def after(self, verb: str, name: str) -> None:
            """Take the lock's file away while the segment gets its name."""
            if (verb, name) == ("rename", TWO):
                (tmp_path / "r" / "lock").unlink()

    log = begun(tmp_path, Stealing())
    with pytest.raises(eventlog.LockLost):
        roll(log)
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)])
    log.close()


def test_a_log_with_the_most_segments_there_may_be_goes_on_in_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six digits name them; a seventh would be no segment to any reader."""
    assert _names.segment_number(_names.segment_name(_names.MAX_SEGMENT)) == _names.MAX_SEGMENT
    assert _names.segment_number(_names.segment_name(_names.MAX_SEGMENT + 1)) is None
    monkeypatch.setattr("eventlog._file_log.MAX_SEGMENT", 2)
    log = begun(tmp_path)
    roll(log)
    with pytest.raises(eventlog.NotStorable, match="the most there may be"):
        roll(log)
    log.append(AT, [event(1)])
    log.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]


def test_a_new_life_may_begin_with_a_roll(tmp_path: Path) -> None:
    """The header's line is the first of that life, like any other line would be."""
    made(tmp_path)
    with eventlog.store(tmp_path).open("r") as log:
        roll(log)
        assert log.life == 2
    assert eventlog.store(tmp_path).verify("r").lives == 2
