"""The status that a writer leaves: believed only while nothing can have moved since, and otherwise not there at all."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
from eventlog import _snapshot, simdisk
from tests.eventlog.making import AT, OPENING, event, segment
from tests.eventlog.powerloss.sweep import Tally, deaths, power
from tests.support.disks import Quick
from tests.support.forkserver import ForkServer


class Words(msgspec.Struct, omit_defaults=True):
    """What a writer says here: how many events there are."""

    events: int
    text: str = ""


def left(runs: Path, run: str = "r") -> bytes | None:
    """What is believed of a run."""
    ((name, words, _),) = eventlog.store(runs).statuses([run])
    assert name == run
    return words


def made(runs: Path, run: str = "r") -> eventlog.Log:
    """A run that is open, with a status of two events."""
    log = eventlog.Directory(runs, disk=Quick()).create(run, at=AT, events=[OPENING])
    log.append(AT, [event(1)], status=Words(2))
    return log


def test_a_closed_run_has_the_status_of_its_last_line_and_an_open_one_has_none(tmp_path: Path) -> None:
    """Whoever looked at a run that is being written would tell of the past."""
    log = made(tmp_path)
    assert left(tmp_path) is None
    log.compact(b"{}", 1)  # a header says nothing new
    log.close()
    assert left(tmp_path) == b'{"events":2}'
    with eventlog.store(tmp_path).open("r") as log:
        assert left(tmp_path) is None
        log.append(AT, [event(2)])
    assert left(tmp_path) is None
    with eventlog.store(tmp_path).open("r") as log:
        log.status = Words(3)
    assert list(eventlog.store(tmp_path).statuses()) == [("r", b'{"events":3}', False)]


def test_a_directory_asks_for_the_status_of_the_last_line_alone_and_when_the_log_is_closed(tmp_path: Path) -> None:
    """A save need not say what the run is by then, if the next one does."""
    asked: list[int] = []

    def says(events: int) -> Callable[[], Words]:
        def said() -> Words:
            asked.append(events)
            return Words(events)

        return said

    with eventlog.Directory(tmp_path, disk=Quick()).create("r", at=AT, events=[OPENING]) as log:
        for number in (1, 2):
            log.append(AT, [event(number)], status=says(number + 1))
        assert not asked
    assert asked == [3]
    assert left(tmp_path) == b'{"events":3}'


def test_a_status_that_cannot_be_written_is_missing_and_the_log_is_closed_all_the_same(tmp_path: Path) -> None:
    """It is a projection: nothing of the log hangs on it."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "status").mkdir()
    made(tmp_path).close()
    with made(tmp_path, "long") as log:
        log.append(AT, [event(2)], status=Words(3, "x" * 65_536))
    assert [left(tmp_path, run) for run in ("r", "long")] == [None, None]
    assert eventlog.store(tmp_path).scan("r").closed


def forged(path: Path, **changed: object) -> None:
    """Write a status that is like the one there but for some fields."""
    was = _snapshot.decode(path.read_bytes())
    assert was is not None
    now: Any = {"run": was.run, "seq": was.seq, "total": was.sum, "version": was.version, **changed}
    path.write_bytes(_snapshot.encode(**now, state=was.state))


def bytes_after(runs: Path) -> None:
    """A save that nobody acknowledged."""
    with segment(runs).open("ab") as file:
        file.write(b"{")


def a_link(runs: Path) -> None:
    """The right words, but elsewhere."""
    (runs / "r/status").rename(runs / "elsewhere")
    (runs / "r/status").symlink_to(runs / "elsewhere")


def a_fifo(runs: Path) -> None:
    """What would have a reader wait for ever."""
    (runs / "r/status").unlink()
    os.mkfifo(runs / "r/status")


WRONG: dict[str, Callable[[Path], object]] = {
    "it is missing": lambda runs: (runs / "r/status").unlink(),
    "it is empty": lambda runs: (runs / "r/status").write_bytes(b""),
    "it is half written": lambda runs: (runs / "r/status").write_bytes((runs / "r/status").read_bytes()[:-9]),
    "a letter of it changed": lambda runs: (runs / "r/status").write_bytes(
        (runs / "r/status").read_bytes().replace(b":2}", b":7}")
    ),
    "it is of another run": lambda runs: forged(runs / "r/status", run="q"),
    "it is of an earlier line": lambda runs: forged(runs / "r/status", seq=1),
    "it is of another line of that number": lambda runs: forged(runs / "r/status", total="0" * 32),
    "it is of another format": lambda runs: forged(runs / "r/status", version=2),
    "it is a link": a_link,
    "it is a fifo": a_fifo,
    "the head is missing": lambda runs: (runs / "r/head").unlink(),
    "a line was written after the head": bytes_after,
    "the log ends earlier": lambda runs: os.truncate(segment(runs), segment(runs).stat().st_size - 1),
    "the log goes on in another segment": lambda runs: shutil.copy(segment(runs), segment(runs, number=2)),
    "the segment is gone": lambda runs: segment(runs).unlink(),
}


@pytest.mark.fault("a status that is wrong")
@pytest.mark.parametrize("how", WRONG)
def test_a_status_that_does_not_fit_its_log_is_not_believed(tmp_path: Path, how: str) -> None:
    """Then the log is read, which knows."""
    made(tmp_path).close()
    assert left(tmp_path) == b'{"events":2}'
    WRONG[how](tmp_path)
    assert left(tmp_path) is None


class DiesBeforeItsHead(eventlog.Disk):
    """Ends the process by SIGKILL when the head is about to be written a second time: after a line's sync."""

    heads = 0

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Count heads."""
        self.heads += bytes(data[:9]) == b'{"state":'
        if self.heads > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write_some(fd, data, offset)


def appends_and_dies(runs: str) -> None:
    """Save a line, and die before the head says so."""
    log = eventlog.Directory(runs, disk=DiesBeforeItsHead()).open("r")
    log.append(AT, [event(2)], status=Words(3))


@pytest.mark.fault("killed between a line's sync and its head")
def test_sigkill_between_a_lines_sync_and_the_head_leaves_no_status_that_forgets_it(
    tmp_path: Path, forks: ForkServer
) -> None:
    """Head and status are both about the line before, and the line is durable."""
    made(tmp_path).close()
    assert forks.run(appends_and_dies, runs=tmp_path).killed
    assert len(eventlog.store(tmp_path).read("r").lines) == 4
    assert left(tmp_path) is None
    eventlog.store(tmp_path).open("r").close()
    assert left(tmp_path) is None


@pytest.mark.unmeasured
@pytest.mark.fault("a power cut around a status")
@pytest.mark.parametrize("model", ["ext4", "posix"])
def test_no_crash_leaves_a_status_of_other_lines(model: simdisk.Model, tmp_path: Path) -> None:
    """Every image of a power cut, and of a death with a power cut after it, is asked for its status."""
    tally = Tally(tmp_path)
    steps = ("create", "one", "close", "two", "close")
    power(tally, steps, model, limit=32)
    for fault in deaths(steps):
        power(tally, steps, model, since="fault", faults=[fault], limit=4)
    assert not tally.violations, tally.violations[:3]
    assert len(tally.images) > 100


@pytest.mark.fault("a status that is wrong")
def test_a_store_that_read_a_status_reads_the_head_alone_until_somebody_opens_the_run(tmp_path: Path) -> None:
    """Whoever opened it left another head, open or closed; then the status is looked at again."""

    class Counting(Quick):
        opened = 0

        def open(self, path: Path, **options: Any) -> int:
            self.opened += 1
            return super().open(path, **options)

    def said() -> bytes | None:
        ((_, words, _),) = store.statuses()
        return words

    made(tmp_path).close()
    disk = Counting()
    store = eventlog.Directory(tmp_path, disk=disk)
    assert (said(), disk.opened) == (b'{"events":2}', 2)
    assert (said(), disk.opened) == (b'{"events":2}', 3)
    with eventlog.Directory(tmp_path, disk=Quick()).open("r") as log:
        assert said() is None
        log.append(AT, [event(2)], status=Words(3))
        assert said() is None
    assert said() == b'{"events":3}'
    with eventlog.Directory(tmp_path, disk=Quick()).open("r") as log:
        log.append(AT, [event(3)])
        log.abandon()
    assert said() is None


@pytest.mark.fault("memory that grows with every run that ever was")
def test_a_store_that_lives_long_keeps_nothing_of_runs_that_another_process_removed(tmp_path: Path) -> None:
    """A worker looks at a directory for months, and each of its runs is removed some day."""
    made(tmp_path, "a").close()
    made(tmp_path, "b").close()
    living = eventlog.Directory(tmp_path)
    assert [words for _, words, _ in living.statuses(living.names())] == 2 * [b'{"events":2}']
    assert dict(eventlog.Directory(tmp_path).prune({"a": {}})) == {"a": None}
    assert living.due([], 1) == ["b"]
    assert [*living._said] == ["b"]  # noqa: SLF001 (what it keeps is seen nowhere else)
