"""A save: one line, one sync, in an order that promises what it returns."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import os
import signal
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

import eventlog
from eventlog import _head
from eventlog._disk import Disk
from tests.eventlog.making import AT, OPENING, event, files, goes_on, head, lines_of, made, numbers, segment
from tests.support.disks import Failing, Lying, Short, Traced, failing
from tests.support.file_logs import file_log, roll

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEGMENT, HEAD = "seg-000001.jsonl", "head"


def test_a_run_that_exists_has_its_header_and_its_opening(tmp_path: Path) -> None:
    """A run is counted before anything else happens; both lines were there when the segment got its name."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    assert [line.seq for line in log.lines] == [0, 1]
    assert (log.seq, log.life, log.at, log.cut, file_log(log).path) == (1, 1, AT, None, tmp_path / "r")
    log.abandon()
    first, second = eventlog.store(tmp_path).read("r").lines
    assert first.header is not None
    assert (first.header.format, first.header.run, first.header.segment) == (eventlog.FORMAT, "r", 1)
    assert (first.prev, second.prev) == ("0" * 32, first.sum)
    assert [bytes(raw) for raw in second.events] == [OPENING]


def test_a_fork_names_its_parent_and_has_a_nonce_of_its_own(tmp_path: Path) -> None:
    """A fork shares events with its parent, never its chain."""
    parent = eventlog.Parent("r", 7, "ab" * 16)
    for run in ("one", "two"):
        eventlog.store(tmp_path).create(run, at=AT, events=[OPENING], parent=parent).close()
    one, two = (eventlog.store(tmp_path).read(run).lines[0].header for run in ("one", "two"))
    assert one is not None
    assert two is not None
    assert one.parent == parent
    assert one.nonce != two.nonce


def test_each_opening_is_a_life_and_lines_keep_it(tmp_path: Path) -> None:
    """`life` says which opening wrote a line; an opening that writes nothing leaves no trace in the numbers."""
    made(tmp_path, saves=1)
    eventlog.store(tmp_path).open("r").close()
    with eventlog.store(tmp_path).open("r") as log:
        assert log.life == 2
        assert [log.append(AT, [event(n)]).life for n in range(2)] == [2, 2]
    with eventlog.store(tmp_path).open("r") as log:
        assert log.append(AT, []).life == 3
    assert [line.life for line in eventlog.store(tmp_path).read("r").lines] == [1, 1, 1, 2, 2, 3]


@pytest.mark.fault("clock set back")
def test_time_never_runs_backwards(tmp_path: Path) -> None:
    """A clock set back between saves, or between lives, is raised to the last line's time."""
    with eventlog.store(tmp_path).create("r", at=AT, events=[OPENING]) as log:
        assert log.append(AT - timedelta(days=365), [event(1)]).at == AT
    with eventlog.store(tmp_path).open("r") as log:
        assert log.append(AT - timedelta(days=1), [event(2)]).at == AT
        assert log.append(AT + timedelta(seconds=1), [event(3)]).at == AT + timedelta(seconds=1)
        assert log.at == AT + timedelta(seconds=1)


def test_a_save_is_one_write_and_one_sync_and_then_the_head(tmp_path: Path) -> None:
    """The order is the promise: the line is durable before the head, or the caller, hears of it."""
    disk = Traced()
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.steps.clear()
    for number in range(20):
        log.append(AT, [event(number, 1000)])
    assert disk.steps == [("write_some", SEGMENT), ("datasync", SEGMENT), ("write_some", HEAD)] * 20
    assert segment(tmp_path).stat().st_size == file_log(log)._segment.laid  # noqa: SLF001 - a save changes no size
    log.close()


def test_zeros_are_laid_and_synced_before_the_line_that_needs_them(tmp_path: Path) -> None:
    """A line is only written over synced zeros, so a crash leaves nothing after it that is not a NUL."""
    disk = Traced()
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.steps.clear()
    log.append(AT, [event(1, 200_000)])
    assert disk.steps == [("write_some", SEGMENT), ("datasync", SEGMENT)] * 2 + [("write_some", HEAD)]
    disk.steps.clear()
    for number in range(100):
        log.append(AT, [event(number, 1400)])
    syncs = disk.steps.count(("datasync", SEGMENT))
    assert 100 + 1 <= syncs <= 100 + 4  # one more for each 64 KiB of zeros
    log.close()


@pytest.mark.parametrize("room", [0, 1, 5000, 300_000])
def test_room_stays_behind_a_line_as_synced_zeros(tmp_path: Path, room: int) -> None:
    """Room for the result is made before the marker, and at least one zero ends every line."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    for number in range(150):
        log.append(AT, [event(number, 997)], room=room)
        data = segment(tmp_path).read_bytes()
        assert len(data) - len(data.rstrip(b"\0")) >= room + 1
    log.abandon()


def test_a_line_that_would_just_fill_the_zeros_has_one_more_behind_it(tmp_path: Path) -> None:
    """The zero after a line is what tells whatever a crash leaves further on from a whole line."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    log.append(AT, [event(1)])
    data = segment(tmp_path).read_bytes()
    zeros, base = len(data) - len(data.rstrip(b"\0")), len(lines_of(segment(tmp_path))[-1])
    log.append(AT, [event(1, zeros - base)])
    assert len(lines_of(segment(tmp_path))[-1]) == zeros
    assert segment(tmp_path).read_bytes().endswith(bytes(1000))
    log.close()


def test_a_full_disk_refuses_the_marker_and_leaves_the_log_alive(tmp_path: Path) -> None:
    """`DiskFull` before the line: nothing written, the zeros taken back and that synced; later the log goes on."""
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        runs = tmp_path / str(code)
        disk = Failing(-1, None)
        log = eventlog.Directory(runs, disk=disk).create("r", at=AT, events=[OPENING])
        before = segment(runs).read_bytes()
        disk.at, disk.error = disk.count + 1, failing(code)
        disk.steps.clear()
        with pytest.raises(eventlog.DiskFull):
            log.append(AT, [event(1)], room=500_000)
        assert disk.failed == f"write_some {SEGMENT}"
        assert disk.steps == [("truncate", SEGMENT), ("datasync", SEGMENT)]
        assert segment(runs).read_bytes() == before
        assert log.append(AT, [event(1)]).seq == 2
        log.close()
        assert numbers(runs) == [0, 1, 2]


def test_a_full_disk_in_the_middle_of_the_line(tmp_path: Path) -> None:
    """A file system that copies on write can refuse the line itself: it is cut back, synced, and saving goes on."""
    disk = Failing(-1, None)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.at, disk.error = disk.count + 1, failing(errno.ENOSPC)
    with pytest.raises(eventlog.DiskFull):
        log.append(AT, [event(1)])
    assert len(lines_of(segment(tmp_path))) == 2
    assert segment(tmp_path).read_bytes() == b"".join(lines_of(segment(tmp_path)))
    assert [log.append(AT, [event(n)]).seq for n in range(2)] == [2, 3]
    log.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("after", [1, 2])
def test_a_full_disk_whose_cut_fails_leaves_the_writer_dead(tmp_path: Path, after: int) -> None:
    """If the cut, or its sync, fails too, nobody knows what is on disk."""

    class Worse(Failing):
        def before(self, verb: str, name: str) -> None:
            super().before(verb, name)
            if self.failed and self.count == self.at + after:
                raise failing(errno.EIO)

    disk = Worse(-1, None)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.at, disk.error = disk.count + 1, failing(errno.ENOSPC)
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)], room=500_000)
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(2)])
    log.close()
    assert goes_on(tmp_path).life == 2


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize(
    ("step", "code"),
    [(0, errno.EIO), (0, errno.EROFS)] + [(1, code) for code in (errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT)],
)
def test_a_save_that_fails_leaves_the_writer_dead(tmp_path: Path, step: int, code: int) -> None:
    """No retry and no further write after a failed write or sync; the close only lets go.

    No room in the write itself is another case, tested above; a quota that shows only at the sync is this one.
    """
    disk = Failing(-1, None)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    log.append(AT, [event(1)])
    disk.at, disk.error = disk.count + 1 + step, failing(code)
    with pytest.raises(eventlog.LogDead) as caught:
        log.append(AT, [event(2)])
    assert isinstance(caught.value.__cause__, OSError)
    assert log.seq == 2
    disk.steps.clear()
    with pytest.raises(eventlog.LogDead, match="a save"):
        log.append(AT, [event(3)])
    before = files(tmp_path / "r")
    log.close()
    assert disk.steps == []
    assert files(tmp_path / "r") == before
    assert eventlog.store(tmp_path).holder("r") is None
    after = goes_on(tmp_path)
    assert numbers(tmp_path) == ([0, 1, 2, 3] if step == 0 else [0, 1, 2, 3, 4])
    assert after.life == 2


@pytest.mark.fault("failing head")
@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_head_that_cannot_be_written_is_a_warning(
    tmp_path: Path, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The line is durable, and an older head is what a power cut leaves too: the writer lives, and says so."""
    disk = Failing(-1, None)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    claim = head(tmp_path).read_bytes()
    disk.at, disk.error = disk.count + 3, failing(code)
    logger = logging.getLogger("eventlog._file_log")
    logger.disabled, logger.propagate = False, True  # whatever a test of the command has set up before
    with caplog.at_level(logging.WARNING, logger=logger.name):
        assert log.append(AT, [event(1)]).seq == 2
    assert disk.failed == "write_some head"
    assert head(tmp_path).read_bytes() == claim
    assert "run r: the head cannot be written" in caplog.text
    assert log.append(AT, [event(2)]).seq == 3
    log.abandon()
    assert numbers(tmp_path) == [0, 1, 2, 3]
    goes_on(tmp_path)


class Fails:
    """A handler that is an object."""

    def __call__(self, _number: int, _frame: object) -> None:
        """Fail as a handler that writes a file does."""
        raise OSError(errno.ENOSPC, "the handler's own")

    def method(self, number: int, frame: object) -> None:
        """Fail a call further down."""
        self(number, frame)


@pytest.mark.fault("signal handler inside a save")
@pytest.mark.parametrize(
    "handler", [Fails(), Fails().method, functools.partial(Fails.method, Fails())], ids=["object", "method", "partial"]
)
@pytest.mark.parametrize("file", ["seg-000001.jsonl", "head", ".tmp-seg-000002.jsonl"])
@pytest.mark.parametrize("act", ["append", "roll", "close"])
def test_an_error_of_a_signal_handler_inside_a_save_is_not_taken_for_the_disks(
    tmp_path: Path, act: str, file: str, handler: Callable[[int, object], None]
) -> None:
    """It goes through as it was raised, and is no full disk: nobody knows what was saved, so the writer is dead."""
    armed: list[int] = []

    class Interrupted(Traced):
        def after(self, verb: str, name: str) -> None:
            if verb in ("write_some", "datasync") and name == file and armed:
                armed.clear()
                signal.raise_signal(signal.SIGUSR1)

    log = eventlog.Directory(tmp_path, disk=Interrupted()).create("r", at=AT, events=[OPENING])
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        armed.append(1)
        acts = {"append": lambda: log.append(AT, [event(1)]), "roll": lambda: roll(log), "close": log.close}
        with contextlib.suppress(OSError):
            acts[act]()
            assert armed, "the error was swallowed, or taken for the disk's"
            return
    finally:
        signal.signal(signal.SIGUSR1, before)
    if act != "close":
        with pytest.raises(eventlog.LogDead):
            log.append(AT, [event(2)])
        log.abandon()
    goes_on(tmp_path)


@pytest.mark.fault("signal handler inside a save")
@pytest.mark.parametrize("act", ["append", "close", "abandon", "compact"])
@pytest.mark.parametrize("during", ["append", "compact"])
def test_a_signal_handler_that_uses_the_log_inside_a_save_is_refused(tmp_path: Path, act: str, during: str) -> None:
    """It would wait for its own thread for ever; the save that it interrupted goes on."""
    refused: list[eventlog.LogBusy] = []

    class Interrupted(Traced):
        def before(self, verb: str, name: str) -> None:
            if verb in ("datasync", "sync") and name.endswith(".jsonl") and armed:
                armed.clear()
                signal.raise_signal(signal.SIGUSR1)

    def handler(_number: int, _frame: object) -> None:
        with pytest.raises(eventlog.LogBusy) as caught:
            getattr(log, act)(*arguments.get(act, ()))
        refused.append(caught.value)

    armed: list[int] = []
    arguments: dict[str, tuple[Any, ...]] = {"append": (AT, [event(9)]), "compact": (b"{}", 1)}
    log = eventlog.Directory(tmp_path, disk=Interrupted()).create("r", at=AT, events=[OPENING])
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        armed.append(1)
        getattr(log, during)(*arguments[during])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [error.run for error in refused] == ["r"]
    assert log.append(AT, [event(2)]).seq == 3
    log.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]


@pytest.mark.fault("signal handler inside a save")
@pytest.mark.parametrize("act", ["close", "abandon"])
def test_a_signal_handler_that_closes_the_log_inside_a_close_closes_no_file_under_it(tmp_path: Path, act: str) -> None:
    """The close would go on with numbers that may be other files' by then; so it is the close that closes them."""
    other = tmp_path / "other"
    other.write_bytes(b"x" * 5000)
    opened: list[int] = []

    class Interrupted(Traced):
        def before(self, verb: str, name: str) -> None:
            if verb in verbs and name:
                verbs.remove(verb)
                signal.raise_signal(signal.SIGUSR1)

    def handler(_number: int, _frame: object) -> None:
        getattr(log, act)()
        opened.extend(os.open(other, os.O_RDWR) for _ in range(8))

    for verb in ("truncate", "sync", "write_some", "datasync"):
        verbs: list[str] = []
        log = eventlog.Directory(tmp_path, disk=Interrupted()).create(f"r-{verb.replace('_', '-')}", at=AT, events=[])
        before = signal.signal(signal.SIGUSR1, handler)
        verbs.append(verb)
        try:
            log.close()
        finally:
            signal.signal(signal.SIGUSR1, before)
            for fd in opened:
                os.close(fd)
        assert (len(opened), verbs) == (8, [])
        opened.clear()
        assert other.read_bytes() == b"x" * 5000
        assert eventlog.store(tmp_path).read(log.run).closed


def test_a_failed_sync_is_never_tried_again(tmp_path: Path) -> None:
    """The page cache calls the pages clean after a failed sync, so a second one would succeed and mean nothing."""
    disk = Failing(-1, None)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    claim = head(tmp_path).read_bytes()
    disk.at, disk.error = disk.count + 2, failing(errno.EIO)
    disk.steps.clear()
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)])
    log.close()
    assert disk.steps == [("write_some", SEGMENT)]
    assert head(tmp_path).read_bytes() == claim


@pytest.mark.fault("interrupted save")
@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_an_interrupt_in_a_save_leaves_the_writer_dead(tmp_path: Path, step: int, late: bool) -> None:
    """KeyboardInterrupt at any point of a save goes through, and the writer is dead, not half alive."""

    class Interrupted(Traced):
        countdown = -1

        def count(self) -> None:
            self.countdown -= 1
            if self.countdown == 0:
                raise KeyboardInterrupt

        def before(self, verb: str, name: str) -> None:  # noqa: ARG002 - the seam's signature
            if not late:
                self.count()

        def after(self, verb: str, name: str) -> None:  # noqa: ARG002 - the seam's signature
            if late:
                self.count()

    disk = Interrupted()
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.countdown = step + 1
    with pytest.raises(KeyboardInterrupt):
        log.append(AT, [event(1)])
    with pytest.raises(eventlog.LogDead, match="cut off"):
        log.append(AT, [event(2)])
    log.close()
    assert not eventlog.store(tmp_path).read("r").closed
    written = not (step == 0 and not late)
    assert goes_on(tmp_path).seq == (3 if written else 2)


def test_an_interrupt_on_the_way_out_of_a_save_leaves_the_writer_dead(tmp_path: Path) -> None:
    """The line is durable but its caller never hears of it: going on would fold a history without it."""

    class Leaving:
        def __enter__(self) -> None:
            """Let in."""

        def __exit__(self, *_: object) -> None:
            raise KeyboardInterrupt

    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    mutex, file_log(log)._writer._mutex = file_log(log)._writer._mutex, Leaving()  # type: ignore[assignment] # noqa: SLF001 - the only place to interrupt
    with pytest.raises(KeyboardInterrupt):
        log.append(AT, [event(1)])
    file_log(log)._writer._mutex = mutex  # noqa: SLF001 - as above
    with pytest.raises(eventlog.LogDead, match="cut off"):
        log.append(AT, [event(2)])
    log.close()
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.fault("short write")
@pytest.mark.parametrize("size", [1, 2, 7, 64, 511, 4096])
def test_short_writes_are_completed(tmp_path: Path, size: int) -> None:
    """The system may take any part of a write; all of it arrives, in its place."""
    log = eventlog.Directory(tmp_path, disk=Short(max(size, 64))).create("r", at=AT, events=[OPENING])
    log._disk.size = size  # type: ignore[attr-defined] # noqa: SLF001 - many one-byte writes of zeros would only be slow
    saved = [log.append(AT, [event(n, 300)]) for n in range(3)]
    log.close()
    reading = eventlog.store(tmp_path).read("r")
    assert reading.lines[2:] == saved
    assert reading.closed


@pytest.mark.fault("short write")
@pytest.mark.parametrize("count", [1, -(10**6), -(10**9)])
def test_a_write_that_claims_an_impossible_count(tmp_path: Path, count: int) -> None:
    """A count above what was given, zero or below means that nothing is known: dead."""
    disk = Lying(count)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.armed = True
    with pytest.raises(eventlog.LogDead, match="said it wrote"):
        log.append(AT, [event(1)])
    log.close()


@pytest.mark.fault("link, FIFO or replaced file")
@pytest.mark.parametrize(
    "harm",
    ["deleted", "replaced", "cut", "grown", "linked"],
)
def test_segment_changed_under_the_writer(tmp_path: Path, harm: str) -> None:
    """A file that is not as this writer left it takes no further line, and the reason is said."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    path = segment(tmp_path)
    content = path.read_bytes()
    if harm == "deleted":
        path.unlink()
    elif harm == "replaced":
        (tmp_path / "copy").write_bytes(content)
        (tmp_path / "copy").replace(path)
    elif harm == "linked":
        (tmp_path / "second").hardlink_to(path)
    else:
        path.write_bytes(content[:-1] if harm == "cut" else content + b"\0")
    before = path.read_bytes() if path.exists() else b""
    with pytest.raises(eventlog.LogDead, match="seg-000001"):
        log.append(AT, [event(1)])
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)])
    log.close()
    assert (path.read_bytes() if path.exists() else b"") == before


def test_close_cuts_the_zeros_and_says_closed_durably(tmp_path: Path) -> None:
    """The cut is synced before the head says closed; the head is synced before the lock is gone."""
    disk = Traced()
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    log.append(AT, [event(1)])
    disk.steps.clear()
    log.close()
    assert disk.steps[:4] == [("truncate", SEGMENT), ("sync", SEGMENT), ("write_some", HEAD), ("datasync", HEAD)]
    assert not segment(tmp_path).read_bytes().endswith(b"\0")
    assert eventlog.store(tmp_path).read("r").closed
    assert (tmp_path / "r" / "lock").read_bytes() == b""  # no name that the next holder could be mistaken for
    disk.steps.clear()
    log.close()
    assert disk.steps == []
    with pytest.raises(eventlog.LogDead, match="closed"):
        log.append(AT, [event(2)])


@pytest.mark.parametrize("step", range(4))
def test_a_close_that_fails_lets_go_and_says_so(tmp_path: Path, step: int) -> None:
    """The end could not be written: the lock is free, the next opener meets an unclean end or the true one."""
    disk = Failing(-1, None)
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    log.append(AT, [event(1)])
    disk.at, disk.error = disk.count + 1 + step, failing(errno.EIO)
    with pytest.raises(eventlog.LogDead, match="closed"):
        log.close()
    assert eventlog.store(tmp_path).holder("r") is None
    assert goes_on(tmp_path).seq == 3


@pytest.mark.fault("failing system call")
def test_closing_files_that_fail_to_close_lets_go_of_the_lock(tmp_path: Path) -> None:
    """EIO from close(2) says nothing that the sync has not said; the descriptor is gone all the same."""

    class Bad(Disk):
        def close(self, fd: int) -> None:
            super().close(fd)
            raise failing(errno.EIO)

    log = eventlog.Directory(tmp_path, disk=Bad()).create("r", at=AT, events=[OPENING])
    log.append(AT, [event(1)])
    log.close()
    assert eventlog.store(tmp_path).holder("r") is None
    assert eventlog.store(tmp_path).read("r").closed


def test_abandon_writes_nothing(tmp_path: Path) -> None:
    """It is the death of a process without one: for tests of crashes, and for a parked life that must not end a run."""
    disk = Traced()
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.steps.clear()
    before = files(tmp_path / "r")
    log.abandon()
    log.close()
    log.abandon()
    assert disk.steps == []
    assert files(tmp_path / "r") == before
    with pytest.raises(eventlog.LogDead, match="abandoned"):
        log.append(AT, [event(1)])
    assert eventlog.store(tmp_path).holder("r") is None


def test_many_threads_append_one_chain(tmp_path: Path) -> None:
    """A tool's thread may log beside the loop: every line is whole, and each thread's lines stay in order."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    saved: list[list[int]] = [[] for _ in range(4)]

    def work(mine: int) -> None:
        for number in range(30):
            saved[mine].append(log.append(AT, [event(number * 10 + mine)]).seq)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert numbers(tmp_path) == list(range(122))
    assert sorted(itertools.chain(*saved)) == list(range(2, 122))
    assert all(mine == sorted(mine) for mine in saved)


def test_head_names_the_last_acknowledged_line(tmp_path: Path) -> None:
    """The witness is what tells a torn save from a lost line, so it must follow every save."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    for number in range(3):
        line = log.append(AT, [event(number)])
        reading = eventlog.store(tmp_path).read("r")
        assert reading.head == _head.Head(
            line.seq,
            line.sum,
            1,
            len(b"".join(lines_of(segment(tmp_path)))),
            closed=False,
        )
    log.close()
    assert head(tmp_path).stat().st_size == 256
