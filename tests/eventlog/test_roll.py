"""Rolls and snapshots being written: in an order that a death anywhere survives, and a full disk hurts nobody."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _names
from tests.eventlog.disks import Failing, Killed, Traced, failing
from tests.eventlog.making import AT, OPENING, event, goes_on, lines_of, made, numbers, segment

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO, SNAP = "seg-000001.jsonl", "seg-000002.jsonl", "snap-1.json"
ROLL = [
    ("truncate", ONE),
    ("sync", ONE),
    ("open", f".tmp-{TWO}"),
    ("write_some", f".tmp-{TWO}"),
    ("write_some", f".tmp-{TWO}"),
    ("sync", f".tmp-{TWO}"),
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
    return eventlog.create(runs, "r", at=AT, events=[OPENING], disk=disk or Traced())


def test_a_roll_seals_before_the_next_name_appears(tmp_path: Path) -> None:
    """A reader that sees the next segment takes the end of this one for final, so the cut is durable first."""
    disk = Traced()
    log = begun(tmp_path, disk)
    disk.steps.clear()
    line = log.roll()
    assert disk.steps == ROLL
    assert segment(tmp_path).read_bytes().endswith(b"}\n")
    assert line.header is not None
    first = eventlog.read(tmp_path, "r").lines[0].header
    assert (line.seq, line.header.segment, line.header.nonce) == (2, 2, first and first.nonce)
    log.append(AT, [event(1)])
    log.close()
    assert lines_of(segment(tmp_path, number=2))[0].startswith(b'{"seq":2,')
    assert numbers(tmp_path) == [0, 1, 2, 3]
    assert eventlog.read(tmp_path, "r").closed
    goes_on(tmp_path)


def test_a_snapshot_is_written_behind_a_roll(tmp_path: Path) -> None:
    """Its line is durable, and the segment behind it begun, before a snapshot can say so."""
    disk = Traced()
    log = begun(tmp_path, disk)
    disk.steps.clear()
    assert log.compact(STATE, 7) == eventlog.Snapshot(
        "r", 1, eventlog.read(tmp_path, "r").lines[1].sum, 7, STATE, (tmp_path / "r" / SNAP).stat().st_size
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
    log.roll()
    assert log.bytes_since_snapshot == before + len(lines_of(segment(tmp_path, number=2))[0])
    log.compact(STATE, 1)
    last = len(segment(tmp_path, number=3).read_bytes().rstrip(b"\0"))
    assert log.bytes_since_snapshot == last
    log.roll()
    since = log.bytes_since_snapshot
    log.close()
    with eventlog.open(tmp_path, "r", accept=lambda _: True) as again:
        assert again.bytes_since_snapshot == since
    with eventlog.open(tmp_path, "r") as again:
        assert again.bytes_since_snapshot > since + before


@pytest.mark.parametrize("at", range(len(ROLL + KEEP)))
def test_sigkill_between_any_two_operations(tmp_path: Path, at: int) -> None:
    """Hazard 20: whatever was done of a compaction, the log is whole, and goes on."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    disk.at, disk.error, disk.lasting, disk.count = at, Killed(), True, -1
    with pytest.raises(Killed):
        log.compact(STATE, 1)
    disk.error = None
    log.abandon()
    reading = eventlog.read(tmp_path, "r")
    assert [line.seq for line in reading.lines] == ([0, 1] if at <= ROLL.index(("rename", TWO)) else [0, 1, 2])
    assert eventlog.verify(tmp_path, "r").ok
    goes_on(tmp_path)
    assert not [path for path in (tmp_path / "r").iterdir() if path.name.startswith(".tmp-")]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("at", range(len(ROLL + KEEP)))
def test_an_error_of_any_operation(tmp_path: Path, at: int, number: int) -> None:
    """Hazard 17: no room leaves the log alive unless a cut is in doubt; else an error kills it in the roll alone."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    disk.at, disk.error, disk.count = at, failing(number), -1
    step = (ROLL + KEEP)[at]
    with pytest.raises(eventlog.LogError) as caught:
        log.compact(STATE, 1)
    assert disk.failed == " ".join(step)
    full = number != errno.EIO
    in_roll, in_temporary = at < len(ROLL), ROLL.index(("open", f".tmp-{TWO}")) <= at <= ROLL.index(("rename", TWO))
    alive = not in_roll or (full and in_temporary)
    if alive:
        assert type(caught.value) is (eventlog.DiskFull if full else eventlog.DiskFailed)
        log.append(AT, [event(5)])
        log.compact(STATE, 1)
    else:
        assert type(caught.value) is eventlog.LogDead
        with pytest.raises(eventlog.LogDead):
            log.append(AT, [event(5)])
    log.close()
    assert eventlog.verify(tmp_path, "r").ok
    goes_on(tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), failing(errno.EIO)])
def test_an_interrupt_in_a_roll_leaves_the_writer_dead(tmp_path: Path, error: BaseException) -> None:
    """Hazard 19: not half alive, with two segments that could both be the last."""
    disk = Failing(-1, None)
    log = begun(tmp_path, disk)
    disk.at, disk.error, disk.count = 6, error, -1
    with pytest.raises((KeyboardInterrupt, eventlog.LogDead)):
        log.roll()
    for act in (log.roll, lambda: log.append(AT, [event(1)]), lambda: log.compact(STATE, 1)):
        with pytest.raises(eventlog.LogDead):
            act()
    log.close()
    assert eventlog.verify(tmp_path, "r").ok


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


def test_a_closed_log_and_a_lost_lock_are_not_rolled(tmp_path: Path) -> None:
    """Hazards 24: a writer that is none any more must not bring a segment into a log that has another writer."""
    log = begun(tmp_path)
    (tmp_path / "r" / "lock").unlink()
    with pytest.raises(eventlog.LockLost):
        log.roll()
    assert not segment(tmp_path, number=2).exists()
    log.close()
    with pytest.raises(eventlog.LogDead):
        log.compact(STATE, 1)


def test_a_lock_lost_within_a_roll_is_noticed_before_anything_is_promised(tmp_path: Path) -> None:
    """Hazard 24: another writer may have begun meanwhile, and knows nothing of the new segment."""

    class Stealing(Traced):
        def after(self, verb: str, name: str) -> None:
            """Take the lock's file away while the segment gets its name."""
            if (verb, name) == ("rename", TWO):
                (tmp_path / "r" / "lock").unlink()

    log = begun(tmp_path, Stealing())
    with pytest.raises(eventlog.LockLost):
        log.roll()
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)])
    log.close()


def test_a_log_with_the_most_segments_there_may_be_goes_on_in_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six digits name them; a seventh would be no segment to any reader."""
    assert _names.segment_number(_names.segment_name(_names.MAX_SEGMENT)) == _names.MAX_SEGMENT
    assert _names.segment_number(_names.segment_name(_names.MAX_SEGMENT + 1)) is None
    monkeypatch.setattr("eventlog._log.MAX_SEGMENT", 2)
    log = begun(tmp_path)
    log.roll()
    with pytest.raises(eventlog.NotStorable, match="the most there may be"):
        log.roll()
    log.append(AT, [event(1)])
    log.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]


def test_a_new_life_may_begin_with_a_roll(tmp_path: Path) -> None:
    """The header's line is the first of that life, like any other line would be."""
    made(tmp_path)
    with eventlog.open(tmp_path, "r") as log:
        assert log.roll().life == log.life == 2
    assert eventlog.verify(tmp_path, "r").lives == 2
