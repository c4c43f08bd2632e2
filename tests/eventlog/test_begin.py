"""A save whose flush somebody else carries on: nobody has the line before the flush is over, whoever ends it."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _flushes, _head
from tests.eventlog.making import AT, OPENING, event, head, numbers
from tests.support import ROOT
from tests.support.disks import Quick, failing
from tests.support.flushing import ByHand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.forkserver import ForkServer

PATIENCE = 90.0


class Held:
    """Flushes that wait until they are let go, and then are done or fail."""

    def __init__(self) -> None:
        self.go, self.error, self.many = threading.Event(), 0, 0
        self.flushes = ByHand(self._sync)

    def _sync(self, fd: int) -> None:
        self.many += 1
        assert self.go.wait(PATIENCE)
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        os.fdatasync(fd)


@pytest.fixture
def held() -> Iterator[Held]:
    """Give the flushes."""
    one = Held()
    yield one
    one.go.set()
    one.flushes.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[eventlog.Log]:
    """Give a log of two lines."""
    with eventlog.store(tmp_path).create("r", at=AT, events=[OPENING]) as log:
        yield log


def claimed(runs: Path) -> int:
    """Give the line that the head says was acknowledged."""
    found = _head.decode(head(runs).read_bytes())
    assert found is not None
    return found.seq


def in_thread(act: object) -> threading.Thread:
    """Do something in another thread."""
    thread = threading.Thread(target=act, daemon=True)  # type: ignore[arg-type] # any function without arguments
    thread.start()
    return thread


def test_a_line_is_nobodys_before_its_flush_is_over(tmp_path: Path, log: eventlog.Log, held: Held) -> None:
    """The head, the log's own number and whoever began the save know of it only then."""
    begun = log.begin(held.flushes, AT, [event(1)])
    assert begun is not None
    held.flushes.submit()
    ended = list[eventlog.Line]()
    waiting = in_thread(lambda: ended.append(begun.end()))
    assert (log.seq, claimed(tmp_path), ended) == (1, 1, [])
    held.go.set()
    waiting.join(PATIENCE)
    assert [line.seq for line in ended] == [2]
    assert (log.seq, claimed(tmp_path), begun.end()) == (2, 2, ended[0])
    log.close()
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("where", ["the same thread", "another thread"])
def test_who_saves_meanwhile_ends_the_save_before_theirs(
    tmp_path: Path, log: eventlog.Log, held: Held, where: str
) -> None:
    """A tool may log its files while the loop, in whose thread it runs, has begun a save: neither waits for ever."""
    begun = log.begin(held.flushes, AT, [event(1)])
    assert begun is not None
    held.go.set()
    if where == "the same thread":
        log.append(AT, [event(2)])
    else:
        in_thread(lambda: log.append(AT, [event(2)])).join(PATIENCE)
    assert begun.end().seq == 2
    assert log.seq == 3
    log.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("end", ["close", "abandon", "compact"])
def test_what_else_is_done_with_the_log_waits_for_the_save(
    tmp_path: Path, log: eventlog.Log, held: Held, end: str
) -> None:
    """A file must not be closed, cut or sealed under a flush."""
    begun = log.begin(held.flushes, AT, [event(1)])
    assert begun is not None
    held.go.set()
    if end == "compact":
        assert log.compact(b"{}", 1) is not None
    else:
        getattr(log, end)()
    assert held.many == 1
    assert begun.end().seq == 2
    assert numbers(tmp_path)[-1] == (3 if end == "compact" else 2)


@pytest.mark.fault("failed sync")
@pytest.mark.parametrize("first", ["its own", "the next"])
def test_a_flush_that_fails_ends_the_writer_whoever_hears_of_it_first(
    log: eventlog.Log, held: Held, first: str
) -> None:
    """There is no second try: a sync that failed marks its pages clean, and a later one would lie."""
    held.error = errno.EIO
    held.go.set()
    begun = log.begin(held.flushes, AT, [event(1)])
    assert begun is not None
    if first == "the next":
        with pytest.raises(eventlog.LogDead):
            log.append(AT, [event(2)])
    for _ in range(2):
        with pytest.raises(eventlog.LogDead, match="a save failed"):
            begun.end()
    assert (held.many, log.seq) == (1, 1)


@pytest.mark.fault("lock file deleted")
def test_a_lock_that_is_lost_while_the_flush_lasts_acknowledges_nothing(
    tmp_path: Path, log: eventlog.Log, held: Held
) -> None:
    """Whoever took the lock before the line was visible has not seen it."""
    begun = log.begin(held.flushes, AT, [event(1)])
    assert begun is not None
    (tmp_path / "r" / "lock").unlink()
    held.go.set()
    with pytest.raises(eventlog.LockLost):
        begun.end()
    assert claimed(tmp_path) == 1


def test_what_the_kernel_does_not_take_is_flushed_as_ever(
    tmp_path: Path, log: eventlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may refuse it: then the line is flushed before it is acknowledged all the same."""
    synced = list[int]()
    real = os.fdatasync

    def noted(fd: int) -> None:
        synced.append(fd)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", noted)
    flushes = ByHand(real, takes=False)
    begun = log.begin(flushes, AT, [event(1)])
    assert begun is not None
    assert not flushes.submit()
    assert synced == []
    assert begun.end().seq == 2
    assert len(synced) == 1
    flushes.close()
    log.close()
    assert numbers(tmp_path) == [0, 1, 2]


def test_a_save_that_cannot_be_begun_here_is_for_append(tmp_path: Path, log: eventlog.Log, held: Held) -> None:
    """Zeros must be laid first, another thread is at it, or another disk stands in front of the system's."""
    assert log.begin(held.flushes, AT, [event(1)], room=1 << 20) is None
    other = eventlog.Directory(tmp_path, disk=Quick()).create("other", at=AT, events=[OPENING])
    assert other.begin(held.flushes, AT, [event(1)]) is None
    other.close()
    assert (log.append(AT, [event(1)]).seq, held.many) == (2, 0)


def test_the_kernel_flushes_many_files_and_says_which_it_did_not_take(tmp_path: Path) -> None:
    """The system's own place for flushes, where it has one: in whatever order, each with its own end."""
    flushes = eventlog.DISK.kernel_flushes()
    if flushes is None:
        pytest.skip("this system takes no flushes of this kind, and saves go to threads")
    logs = [eventlog.store(tmp_path).create(f"r{n}", at=AT, events=[OPENING]) for n in range(20)]
    begun = [log.begin(flushes, AT, [event(n)]) for n, log in enumerate(logs)]
    read, write = os.pipe()
    broken = flushes.begin(read)
    flushes.submit()
    assert [one.end().seq for one in reversed(begun) if one is not None] == [2] * 20
    with contextlib.suppress(OSError):  # some kernels take it, and say so at its end
        assert not broken.wait()
    assert {flush.number for flush in flushes.ended()} == set(range(1, 22))
    assert list(flushes.ended()) == []
    for fd in (read, write):
        os.close(fd)
    for log in logs:
        log.close()


@pytest.mark.parametrize("refused", ["io_setup", "io_getevents", "a descriptor"])
def test_a_place_for_flushes_that_is_refused_takes_nothing_of_the_kernels(
    monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """A machine has few of these places, and one that nobody has is given back by nobody.

    A container may allow some of the calls and not others: who orders must be able to collect.
    """

    def taken() -> int:
        return Path("/proc/self/maps").read_text(encoding="utf-8").count("[aio]")

    def refuses(*_: object) -> int:
        raise failing(errno.EMFILE)

    if eventlog.DISK.kernel_flushes() is None:
        pytest.skip("this system takes no flushes of this kind, and saves go to threads")
    gc.collect()
    before = taken()
    held = eventlog.DISK.kernel_flushes()
    assert (taken(), held is None) == (before + 1, False)
    if refused == "a descriptor":
        monkeypatch.setattr(os, "eventfd", refuses)
    else:
        machine, no_such_call = os.uname().machine, 100_000
        numbers = list(_flushes.NUMBERS[machine])
        numbers[["io_setup", "io_destroy", "io_getevents"].index(refused)] = no_such_call
        monkeypatch.setitem(_flushes.NUMBERS, machine, tuple(numbers))
    assert (eventlog.DISK.kernel_flushes(), taken()) == (None, before + 1)


def test_a_process_that_ends_leaves_its_place_for_flushes_to_the_kernel() -> None:
    """Giving it back takes long enough for a second Ctrl-C, which ended in a traceback."""
    program = (
        "import eventlog\n"
        "eventlog._flushes._destroyed = lambda *_: print('by hand')\n"
        "kept = eventlog.DISK.kernel_flushes()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT)
    assert (ended.stdout, ended.stderr) == ("", "")


def saves_without_ctypes(runs: str) -> list[object]:
    """Save a line in a Python that was built without ctypes; and whether the kernel flushes there."""
    sys.modules["ctypes"] = None  # type: ignore[assignment] # so that an import of it fails
    with eventlog.store(runs).create("r", at=AT, events=[OPENING]) as log:
        log.append(AT, [event(1)])
    return [numbers(Path(runs)), eventlog.DISK.kernel_flushes() is not None]


def test_a_python_without_ctypes_saves_all_the_same(tmp_path: Path, forks: ForkServer) -> None:
    """It is an optional part of Python, and only makes a save cheaper."""
    assert forks.run(saves_without_ctypes, runs=tmp_path).value == [[0, 1, 2], False]


@pytest.mark.fault("a signal handler that saves inside a save")
@pytest.mark.parametrize("where", ["_noted", "_end"])
def test_a_signal_handler_that_saves_while_its_thread_collects_flushes_does_not_hang(
    tmp_path: Path, log: eventlog.Log, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It runs between two steps of the collecting, in the same thread."""
    flushes = eventlog.DISK.kernel_flushes()
    if flushes is None:
        pytest.skip("this system takes no flushes of this kind, and saves go to threads")
    begun, step = log.begin(flushes, AT, [event(1)]), getattr(flushes, where)
    assert begun is not None

    def interrupted(*given: object) -> object:
        monkeypatch.setattr(flushes, where, step)
        log.append(AT, [event(2)])
        return step(*given)

    def collect() -> None:
        flushes.submit()
        monkeypatch.setattr(flushes, where, interrupted)
        while not begun.results:
            list(flushes.ended())

    thread = in_thread(collect)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert begun.end().seq == 2
    log.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]
