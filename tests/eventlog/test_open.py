"""Opening again: what a dead writer left is made safe to write after, in an order that survives another death."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _head, simdisk
from tests.eventlog.making import AT, OPENING, event, files, goes_on, head, heads, lines_of, made, numbers, segment
from tests.support.disks import Failing, Quick, Traced, failing
from tests.support.file_logs import file_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEGMENT, HEAD = "seg-000001.jsonl", "head"


def torn(runs: Path) -> bytes:
    """Make a log whose writer died in its third save, the head after; return the torn bytes."""
    found = heads(runs, saves=3)
    lines = lines_of(segment(runs))
    segment(runs).write_bytes(b"".join(lines[:-1]) + lines[-1][:60] + bytes(2000))
    head(runs).write_bytes(found[-2])
    return lines[-1][:60]


def test_a_closed_log_goes_on_in_the_same_file(tmp_path: Path) -> None:
    """After a proper close nothing is in doubt: no copy, however long the log is."""
    path = made(tmp_path)
    before, inode = path.read_bytes(), path.stat().st_ino
    goes_on(tmp_path)
    assert path.stat().st_ino == inode
    assert path.read_bytes().startswith(before)


@pytest.mark.parametrize("how", ["abandoned", "no head", "zeros after", "linked"])
def test_everything_else_is_written_afresh(tmp_path: Path, how: str) -> None:
    """After an unclean end the page cache may lie and an old writer may still write: the file gets a new identity."""
    path = made(tmp_path, end="abandon" if how == "abandoned" else "close")
    if how == "no head":
        head(tmp_path).unlink()
    elif how == "zeros after":
        path.write_bytes(path.read_bytes() + b"\0")
    elif how == "linked":
        (tmp_path / "second").hardlink_to(path)
    lines = lines_of(path)
    with path.open("rb") as old:
        goes_on(tmp_path)
        assert path.stat().st_ino != os.fstat(old.fileno()).st_ino
    assert lines_of(path)[:5] == lines


def test_a_writer_that_lost_its_lock_is_fenced(tmp_path: Path) -> None:
    """Its file, and its head, have no name any more: what it still writes reaches no reader."""
    old = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    (tmp_path / "r" / "lock").unlink()
    new = eventlog.store(tmp_path).open("r")
    file_log(old)._segment.write(b"x" * 50 + b"\n")  # noqa: SLF001 - past every guard, as a write already under way would be
    file_log(old)._witness.claim(_head.Head(99, "0" * 32, 1, 9999, closed=True))  # noqa: SLF001 - as above
    new.append(AT, [event(1)])
    with pytest.raises(eventlog.LogDead, match="seg-000001"):
        file_log(old)._segment.guard()  # noqa: SLF001 - the guard that comes after the lock's
    with pytest.raises(eventlog.LockLost):
        old.append(AT, [event(2)])
    old.close()
    new.close()
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.fault("power cut in a recovery")
def test_the_order_of_an_opening_after_a_death(tmp_path: Path) -> None:
    """Evidence is durable before the cut, the cut before the head, the names before a save claims more."""
    name = f"torn-000001-{hashlib.sha256(torn(tmp_path)).hexdigest()}"
    disk = Traced()
    log = eventlog.Directory(tmp_path, disk=disk).open("r")
    log.append(AT, [event(9)])
    log.abandon()
    lock = [("open", "lock"), ("write_some", "lock")]
    evidence = [("open", f".tmp-{name}"), ("write_some", f".tmp-{name}"), ("sync", f".tmp-{name}"), ("rename", name)]
    copy = [("open", f".tmp-{SEGMENT}"), ("write_some", f".tmp-{SEGMENT}"), ("write_some", f".tmp-{SEGMENT}")]
    fresh = [*copy, ("sync", f".tmp-{SEGMENT}"), ("rename", SEGMENT)]
    witness = [("open", ".tmp-head"), ("write_some", ".tmp-head"), ("sync", ".tmp-head"), ("rename", HEAD)]
    save = [("write_some", SEGMENT), ("datasync", SEGMENT), ("write_some", HEAD)]
    run, parent = ("sync_dir", "r"), ("sync_dir", tmp_path.name)
    assert disk.steps == [*lock, *evidence, run, *fresh, run, *witness, run, parent, *save]


def test_the_order_of_an_opening_after_a_close(tmp_path: Path) -> None:
    """The head says open, durably, before the first byte is written after the closed end."""
    made(tmp_path)
    disk = Traced()
    log = eventlog.Directory(tmp_path, disk=disk).open("r")
    log.append(AT, [event(9)])
    log.abandon()
    lock = [("open", "lock"), ("write_some", "lock"), ("open", SEGMENT)]
    witness = [("open", ".tmp-head"), ("write_some", ".tmp-head"), ("sync", ".tmp-head"), ("rename", HEAD)]
    zeros = [("write_some", SEGMENT), ("datasync", SEGMENT)]
    save = [("write_some", SEGMENT), ("datasync", SEGMENT), ("write_some", HEAD)]
    assert disk.steps == [*lock, *witness, ("sync_dir", "r"), ("sync_dir", tmp_path.name), *zeros, *save]


def test_the_order_of_a_creation(tmp_path: Path) -> None:
    """The segment is whole before it has its name; directory and parent are durable before the head claims."""
    disk = Traced()
    eventlog.Directory(tmp_path / "runs", disk=disk).create("r", at=AT, events=[OPENING]).abandon()
    known = [("sync_dir", tmp_path.parent.name)]
    places = [*known, ("mkdir", "runs"), ("sync_dir", tmp_path.name), ("sync_dir", "runs"), ("mkdir", "r")]
    lock = [("open", "lock"), ("write_some", "lock")]
    lines = [("open", f".tmp-{SEGMENT}"), ("write_some", f".tmp-{SEGMENT}"), ("write_some", f".tmp-{SEGMENT}")]
    named = [("sync", f".tmp-{SEGMENT}"), ("rename", SEGMENT), ("sync_dir", "r"), ("sync_dir", "runs")]
    witness = [("open", ".tmp-head"), ("write_some", ".tmp-head"), ("sync", ".tmp-head")]
    assert disk.steps == [*places, *lock, *witness, *lines, *named, ("rename", HEAD), ("sync_dir", "r")]


@pytest.mark.parametrize("end", ["close", "abandon"])
def test_an_opened_head_claims_no_more_than_before(tmp_path: Path, end: str) -> None:
    """Only a save may raise the claim, because only after it is everything below the claim known to be durable."""
    found = heads(tmp_path, saves=2)
    assert len(found) == 3
    if end == "close":
        eventlog.store(tmp_path).open("r").close()
    head(tmp_path).write_bytes(head(tmp_path).read_bytes() if end == "close" else found[1])
    before = eventlog.store(tmp_path).read("r").head
    log = eventlog.store(tmp_path).open("r")
    after = eventlog.store(tmp_path).read("r").head
    log.abandon()
    assert before is not None
    assert after == _head.Head(before.seq, before.sum, before.segment, before.offset, closed=False)


def test_a_log_without_a_head_gets_one_that_claims_nothing(tmp_path: Path) -> None:
    """A lost witness is not replaced by a made-up one."""
    made(tmp_path)
    head(tmp_path).unlink()
    log = eventlog.store(tmp_path).open("r")
    found = eventlog.store(tmp_path).read("r").head
    assert found is not None
    assert found.seq == -1
    log.append(AT, [event(1)])
    assert eventlog.store(tmp_path).read("r").head != found
    log.close()


def test_temporary_files_of_a_dead_writer_are_removed_and_a_directory_is_left(tmp_path: Path) -> None:
    """They are disposable at any time; what cannot be removed is in nobody's way."""
    made(tmp_path)
    (tmp_path / "r" / ".tmp-0011-seg-000001.jsonl").write_bytes(b"half")
    (tmp_path / "r" / ".tmp-dir").mkdir()
    goes_on(tmp_path)
    assert [path.name for path in (tmp_path / "r").glob(".tmp-*")] == [".tmp-dir"]


def test_a_file_that_could_not_be_written_whole_leaves_no_temporary(tmp_path: Path) -> None:
    """On a full disk the half copy would take the room that is missing."""

    class Full(Traced):
        def before(self, verb: str, name: str) -> None:
            if (verb, name) == ("sync", f".tmp-{SEGMENT}"):
                raise failing(errno.ENOSPC)

    made(tmp_path, end="abandon")
    with pytest.raises(eventlog.DiskFull):
        eventlog.Directory(tmp_path, disk=Full()).open("r")
    assert not list((tmp_path / "r").glob(".tmp-*"))


def test_temporary_files_of_a_damaged_run_are_left(tmp_path: Path) -> None:
    """They are removed after classification: a damaged run is evidence as a whole."""
    path = made(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    (tmp_path / "r" / ".tmp-0011-seg-000001.jsonl").write_bytes(b"half")
    before = files(tmp_path / "r")
    with pytest.raises(eventlog.LogDamaged):
        eventlog.store(tmp_path).open("r")
    assert files(tmp_path / "r") == before


def _create(runs: Path, disk: Failing) -> int:
    eventlog.Directory(runs, disk=disk).create("r", at=AT, events=[OPENING]).abandon()
    return 1


def _append(runs: Path, disk: Failing, size: int = 10) -> int:
    log = eventlog.Directory(runs, disk=disk).open("r")
    try:
        for number in range(2):
            disk.acknowledged = log.append(AT, [event(number, size)]).seq
    finally:
        log.abandon()  # which writes nothing: a dead process only loses its descriptors
    return log.seq


def _append_pages(runs: Path, disk: Failing) -> int:
    return _append(runs, disk, 150_000)


def _close(runs: Path, disk: Failing) -> int:
    log = eventlog.Directory(runs, disk=disk).open("r")
    try:
        log.close()
    finally:
        log.abandon()
    return log.seq


def _nothing(_: Path) -> None:
    """Leave the directory empty."""


STORIES = [
    pytest.param(_create, _nothing, id="create"),
    pytest.param(_append, made, id="append after a close"),
    pytest.param(_append, torn, id="append after a torn save"),
    pytest.param(_append_pages, torn, id="append many pages"),
    pytest.param(_close, torn, id="close"),
]


def _steps_of(tmp_path: Path, story: Callable[[Path, Failing], int], start: Callable[[Path], object]) -> int:
    """Make the start, play the story through once on a copy of it, and count its operations."""
    (tmp_path / "start").mkdir()
    start(tmp_path / "start")
    whole = Failing(-1, None)
    shutil.copytree(tmp_path / "start", tmp_path / "whole")
    story(tmp_path / "whole", whole)
    return whole.count + 1


@pytest.mark.fault("killed between two operations")
@pytest.mark.parametrize(("story", "start"), STORIES)
def test_killed_between_any_two_operations_and_again_in_the_recovery(
    tmp_path: Path,
    story: Callable[[Path, Failing], int],
    start: Callable[[Path], object],
) -> None:
    """Wherever the process dies, and dies again, nothing acknowledged is lost or called damage."""
    steps = _steps_of(tmp_path, story, start)
    assert steps > 5, "a story of so few operations dies nowhere"
    for first in range(steps):
        for second in (None, 3, 9, 15):
            runs = tmp_path / f"{first}-{second}"
            shutil.copytree(tmp_path / "start", runs)
            disk = Failing(first, simdisk.Killed())
            with contextlib.suppress(simdisk.Killed):
                story(runs, disk)
            if second is not None and "r" in eventlog.store(runs).runs():
                with contextlib.suppress(simdisk.Killed):
                    _append(runs, Failing(second, simdisk.Killed()))
            _survives(runs, known(tmp_path), disk.acknowledged, tries=4)
            shutil.rmtree(runs)


CODES = [
    errno.EIO,
    errno.ENOSPC,
    *(pytest.param(code, marks=pytest.mark.full) for code in (errno.EMFILE, errno.EROFS, errno.EDQUOT)),
]


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize(("story", "start"), STORIES)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
def test_any_operation_that_fails_is_said_and_loses_nothing(
    tmp_path: Path,
    story: Callable[[Path, Failing], int],
    start: Callable[[Path], object],
    code: int,
    lasting: bool,
) -> None:
    """Each operation fails in turn, once or for ever; the error is one of ours, the log survives."""
    for place in range(_steps_of(tmp_path, story, start)):
        runs = tmp_path / str(place)
        shutil.copytree(tmp_path / "start", runs)
        disk = Failing(place, failing(code), lasting=lasting)
        try:
            story(runs, disk)
        except eventlog.LogError:
            pass
        else:  # a witness that is older than the log is normal
            assert disk.failed == "write_some head"
        _survives(runs, known(tmp_path), disk.acknowledged, tries=2)
        shutil.rmtree(runs)


@pytest.mark.fault("stolen lock")
@pytest.mark.parametrize("end", ["abandon", "torn"])
def test_an_opener_that_lost_its_lock_renames_nothing_over_the_other_writers_lines(tmp_path: Path, end: str) -> None:
    """An older copy of the segment, or of the head, would take an acknowledged line away and look whole."""
    made(tmp_path / "start", end="abandon")
    if end == "torn":
        path = segment(tmp_path / "start")
        path.write_bytes(path.read_bytes().rstrip(b"\0") + b'{"seq":5,"li')
    for moment in range(4):
        runs = tmp_path / str(moment)
        shutil.copytree(tmp_path / "start", runs)

        class Thief(Traced):
            syncs, saved = 0, -1

            def after(self, verb: str, name: str) -> None:
                if verb == "sync" and name.startswith(".tmp-"):
                    self.syncs += 1
                    if self.syncs == moment + 1:  # noqa: B023 (called within this round)
                        (runs / "r" / "lock").unlink()  # noqa: B023 (as above)
                        with eventlog.store(runs).open("r") as log:  # noqa: B023 (as above)
                            self.saved = log.append(AT, [event(7)]).seq

        disk = Thief()
        try:
            log = eventlog.Directory(runs, disk=disk).open("r")
        except eventlog.LockLost:
            assert disk.saved >= 0
        else:
            assert disk.saved < 0
            log.abandon()
        verdict = eventlog.store(runs).verify("r")
        assert verdict.ok
        assert verdict.seq >= disk.saved


def known(tmp_path: Path) -> int:
    """Give the number of the last line that the start of a story holds; -1 when it holds no run."""
    start = tmp_path / "start"
    return numbers(start)[-1] if eventlog.store(start).runs() else -1


def _survives(runs: Path, before: int, acknowledged: int, *, tries: int) -> None:
    """Check that the next opener finds what was acknowledged and at most what was tried, and can go on."""
    if "r" not in eventlog.store(runs).runs():
        assert max(before, acknowledged) < 0
        eventlog.Directory(runs, disk=Quick()).create("r", at=AT, events=[OPENING]).close()
    found = numbers(runs)
    assert max(before, acknowledged) <= found[-1] <= max(before, 0) + tries
    assert goes_on(runs, disk=Quick()).seq == found[-1] + 1
    assert not list((runs / "r").glob(".tmp-*"))


def test_a_copy_that_ends_early_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    """A segment cut while it is being copied (by a writer without lock, or a hand) must not become the log."""
    made(tmp_path, size=3000, end="abandon")

    class Ending(Traced):
        def pread(self, fd: int, size: int, offset: int) -> bytes:
            found = super().pread(fd, size, offset)
            return b"" if ("write_some", "lock") in self.steps and self.scanned() else found

        def scanned(self) -> bool:
            return any(name.startswith(".tmp-seg") for _, name in self.steps)

    before = segment(tmp_path).read_bytes()
    with pytest.raises(eventlog.DiskFailed, match="while it was copied"):
        eventlog.Directory(tmp_path, disk=Ending()).open("r")
    assert segment(tmp_path).read_bytes() == before
    assert goes_on(tmp_path).seq == 5
