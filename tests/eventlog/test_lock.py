"""One process per run: the kernel decides, the file only says who (hazards 23 to 27)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog._disk import Disk
from tests.eventlog.making import AT, OPENING, child, event, files, goes_on, made, numbers, segment

if TYPE_CHECKING:
    from collections.abc import Iterator

forks = pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # forking is the fault
HOLD = """
import sys, eventlog
from datetime import datetime, UTC
log = eventlog.open(sys.argv[1], "r")
log.append(datetime.now(UTC), [b'{"type":"held"}'])
print("held", flush=True)
sys.stdin.readline()
log.close()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that holds the run `r`."""
    made(tmp_path)
    process = child(HOLD, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_second_opener_in_another_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """It is refused at once, told who holds the run, and writes nothing; readers go on reading."""
    before = files(tmp_path / "r")
    with pytest.raises(eventlog.RunLocked, match=f"held by process {holder.pid} on ") as caught:
        eventlog.open(tmp_path, "r")
    assert caught.value.pid == holder.pid
    assert caught.value.since is not None
    assert abs((datetime.now(UTC) - caught.value.since).total_seconds()) < 600
    who = eventlog.lock_holder(tmp_path, "r")
    assert who is not None
    assert (who.pid, who.host, who.since) == caught.value.args[1:]
    assert eventlog.read(tmp_path, "r").lines[-1].seq == 5
    assert files(tmp_path / "r") == before
    holder.communicate("\n")
    assert eventlog.lock_holder(tmp_path, "r") is None
    assert goes_on(tmp_path).life == 3


def test_second_opener_in_the_same_thread_and_in_another(tmp_path: Path) -> None:
    """A lock on a descriptor of its own also excludes the same process."""
    with eventlog.create(tmp_path, "r", at=AT, events=[OPENING]):
        with pytest.raises(eventlog.RunLocked) as caught:
            eventlog.open(tmp_path, "r")
        assert caught.value.pid == os.getpid()
        found: list[type[BaseException]] = []

        def work() -> None:
            try:
                eventlog.open(tmp_path, "r")
            except eventlog.RunLocked as error:
                found.append(type(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [eventlog.RunLocked]
    assert goes_on(tmp_path).life == 2


@pytest.mark.parametrize("harm", ["deleted", "replaced", "directory moved"])
def test_lock_file_lost_while_held(tmp_path: Path, harm: str) -> None:
    """Hazard 24: the next save says `LockLost`, writes nothing, and so does the close."""
    log = eventlog.create(tmp_path, "r", at=AT, events=[OPENING])
    lock, place = tmp_path / "r" / "lock", tmp_path / "r"
    if harm == "deleted":
        lock.unlink()
    elif harm == "replaced":
        (tmp_path / "other").write_bytes(lock.read_bytes())
        (tmp_path / "other").replace(lock)
    else:
        place = place.rename(tmp_path / "moved")
    before = files(place)
    for _ in range(2):
        with pytest.raises((eventlog.LockLost, eventlog.LogDead), match="lock file"):
            log.append(AT, [event(1)])
    log.close()
    assert files(place) == before


def test_lock_file_lost_before_the_close(tmp_path: Path) -> None:
    """The end of a log is written by its holder alone."""
    log = eventlog.create(tmp_path, "r", at=AT, events=[OPENING])
    (tmp_path / "r" / "lock").unlink()
    before = files(tmp_path / "r")
    with pytest.raises(eventlog.LockLost):
        log.close()
    assert files(tmp_path / "r") == before


def test_lock_file_lost_in_the_middle_of_a_save(tmp_path: Path) -> None:
    """A new holder that scanned before the line was visible will never see it, so it must not be acknowledged."""

    class Losing(Disk):
        armed = False

        def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if self.armed:
                (tmp_path / "r" / "lock").unlink(missing_ok=True)
            return super().write_some(fd, data, offset)

    disk = Losing()
    log = eventlog.create(tmp_path, "r", at=AT, events=[OPENING], disk=disk)
    disk.armed = True
    with pytest.raises(eventlog.LockLost):
        log.append(AT, [event(1)])
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)])
    log.close()
    found = eventlog.read(tmp_path, "r").head
    assert found is not None
    assert found.seq == 1


def test_a_lock_file_replaced_while_it_is_being_taken(tmp_path: Path) -> None:
    """The file that was locked must be the one with the name, or two writers could each hold one."""
    made(tmp_path)
    lock = tmp_path / "r" / "lock"

    class Racing(Disk):
        rounds = 0

        def try_lock(self, fd: int, *, shared: bool = False) -> bool:
            self.rounds += 1
            if self.rounds <= 2:
                lock.unlink()
                lock.touch()
            return super().try_lock(fd, shared=shared)

        def pause(self, seconds: float) -> None:
            """Do not wait."""

    disk = Racing()
    with eventlog.open(tmp_path, "r", disk=disk) as log:
        assert disk.rounds == 3
        assert log.append(AT, [event(1)]).seq == 5


def test_someone_who_only_asks_does_not_look_like_a_holder(tmp_path: Path) -> None:
    """`lock_holder` holds a shared lock for an instant; an opener that meets it tries again instead of refusing."""
    made(tmp_path)
    asking = os.open(tmp_path / "r" / "lock", os.O_RDONLY)
    assert Disk().try_lock(asking, shared=True)

    class Waiting(Disk):
        def pause(self, seconds: float) -> None:  # noqa: ARG002 - the verb's signature
            nonlocal asking
            if asking >= 0:
                os.close(asking)
                asking = -1

    with eventlog.open(tmp_path, "r", disk=Waiting()) as log:
        assert log.seq == 4
    assert asking == -1


def test_an_opener_does_not_wait_for_ever_for_someone_who_asks(tmp_path: Path) -> None:
    """A foreign program that keeps a shared lock gets a clear refusal, not a hang."""
    made(tmp_path)
    asking = os.open(tmp_path / "r" / "lock", os.O_RDONLY)
    assert Disk().try_lock(asking, shared=True)

    class Impatient(Disk):
        def pause(self, seconds: float) -> None:
            """Do not wait."""

    with pytest.raises(eventlog.RunLocked, match="left no name"):
        eventlog.open(tmp_path, "r", disk=Impatient())
    os.close(asking)


@forks
@pytest.mark.parametrize("act", ["append", "close", "abandon", "exit"])
def test_a_forked_child_neither_writes_nor_releases(tmp_path: Path, act: str) -> None:
    """Hazard 25: lock and file are shared with the child; whatever the child does, they stay the parent's."""
    log = eventlog.create(tmp_path, "r", at=AT, events=[OPENING])
    before = files(tmp_path / "r")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if act == "append":
                try:
                    log.append(AT, [event(1)])
                except eventlog.LogDead:
                    status = 0
            else:
                getattr(log, act, lambda: None)()
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert files(tmp_path / "r") == before
    with pytest.raises(eventlog.RunLocked):
        eventlog.open(tmp_path, "r")
    assert log.append(AT, [event(1)]).seq == 2
    log.close()
    assert numbers(tmp_path) == [0, 1, 2]


@forks
def test_a_forked_child_of_a_busy_writer_does_not_wait_for_its_mutex(tmp_path: Path) -> None:
    """The mutex may be held for ever in the child's copy; the child must be refused, not hang."""
    log = eventlog.create(tmp_path, "r", at=AT, events=[OPENING])
    with log._mutex:  # noqa: SLF001 - as a thread in the middle of a save would hold it
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            status = 1
            try:
                log.append(AT, [event(1)])
            except eventlog.LogDead:
                log.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    log.close()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """Hazard 26: the kernel drops the lock with the process; the pid left in the file decides nothing."""
    holder.kill()
    holder.wait()
    left = json.loads((tmp_path / "r" / "lock").read_text())
    assert left["pid"] == holder.pid
    assert eventlog.lock_holder(tmp_path, "r") is None
    log = goes_on(tmp_path)
    assert (log.seq, log.life) == (6, 3)


@pytest.mark.parametrize("content", [b"", b"\0" * 512, b"{}", b'{"pid":"x"}', b"x" * 5000])
def test_a_name_of_a_living_process_or_rubbish_in_a_free_lock(tmp_path: Path, content: bytes) -> None:
    """Hazard 26: a pid that another process has now, or bytes that mean nothing, never keep a run closed."""
    made(tmp_path)
    lock = tmp_path / "r" / "lock"
    mine = json.dumps({"pid": os.getpid(), "host": Disk().host(), "since": "2026-01-01T00:00:00Z"}).encode()
    for left in (mine, content):
        lock.write_bytes(left)
        assert eventlog.lock_holder(tmp_path, "r") is None
        eventlog.open(tmp_path, "r").close()


def test_a_holder_that_left_no_name(tmp_path: Path) -> None:
    """Whoever holds the kernel's lock holds the run, named or not."""
    made(tmp_path)
    fd = os.open(tmp_path / "r" / "lock", os.O_RDWR)
    assert Disk().try_lock(fd)

    class Patient(Disk):
        def pause(self, seconds: float) -> None:
            """Do not wait."""

    with pytest.raises(eventlog.RunLocked, match="left no name") as caught:
        eventlog.open(tmp_path, "r", disk=Patient())
    assert caught.value.pid is None
    who = eventlog.lock_holder(tmp_path, "r", disk=Patient())
    assert who is not None
    assert who.pid == 0
    os.close(fd)


def test_a_holder_that_is_about_to_sign_is_waited_for(tmp_path: Path) -> None:
    """Between locking and signing lie microseconds; the refusal must not name the process that held it before."""
    made(tmp_path)
    fd = os.open(tmp_path / "r" / "lock", os.O_RDWR)
    disk = Disk()
    assert disk.try_lock(fd)

    class Signing(Disk):
        def pause(self, seconds: float) -> None:  # noqa: ARG002 - the verb's signature
            who = {"pid": os.getpid(), "host": disk.host(), "since": "2026-01-01T00:00:00Z"}
            os.pwrite(fd, json.dumps(who).encode(), 0)

    with pytest.raises(eventlog.RunLocked, match=f"process {os.getpid()}"):
        eventlog.open(tmp_path, "r", disk=Signing())
    os.close(fd)


RACE = """
import sys, os, eventlog
from datetime import datetime, UTC
sys.stdin.readline()
try:
    log = eventlog.open(sys.argv[1], "r")
except eventlog.RunLocked as error:
    print("refused", error.pid, flush=True)
else:
    log.append(datetime.now(UTC), [b'{"type":"won"}'])
    print("won", os.getpid(), flush=True)
    sys.stdin.readline()
    log.close()
"""


def test_20_processes_open_one_run_at_once(tmp_path: Path) -> None:
    """Hazard 27: one goes on, nineteen are told who holds it, and only the one writes."""
    made(tmp_path, end="abandon")
    processes = [child(RACE, tmp_path) for _ in range(20)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = []
    for process in processes:
        assert process.stdout is not None
        answers.append(process.stdout.readline().split())
    winners = [pid for what, pid in answers if what == "won"]
    assert len(winners) == 1
    assert [pid for what, pid in answers if what == "refused"] == winners * 19
    for process in processes:
        process.communicate("\n")
    reading = eventlog.read(tmp_path, "r")
    assert [bytes(raw) for raw in reading.lines[-1].events] == [b'{"type":"won"}']
    assert (reading.lines[-1].seq, reading.closed) == (5, True)


def test_an_opener_refused_by_damage_leaves_even_the_lock_file_as_it_was(tmp_path: Path) -> None:
    """Damage touches nothing on disk: the holder's name it wrote is put back."""
    path = made(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    for left in (b"", b"short", b"y" * 3000):
        (tmp_path / "r" / "lock").write_bytes(left)
        with pytest.raises(eventlog.LogDamaged):
            eventlog.open(tmp_path, "r")
        assert (tmp_path / "r" / "lock").read_bytes() == left
    assert segment(tmp_path).exists()
