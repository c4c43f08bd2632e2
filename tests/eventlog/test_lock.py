"""One process per run: the kernel decides, the file only says who."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog._disk import Disk
from tests.eventlog.making import AT, OPENING, child, event, files, goes_on, made, numbers, segment
from tests.support.faulty_disk import Fault, FaultyDisk
from tests.support.file_logs import file_log

if TYPE_CHECKING:
    from collections.abc import Iterator

forks = pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # forking is the fault
HOLD = """
import sys, eventlog
from datetime import datetime, UTC
log = eventlog.store(sys.argv[1]).open("r")
log.append(datetime.now(UTC), [b'{"type":"held"}'])
print("held", flush=True)
sys.stdin.readline()
log.close()
"""


class Impatient(Disk):
    """A disk that waits for nobody."""

    def pause(self, seconds: float) -> None:
        """Do not wait."""


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


@pytest.mark.fault("second opener")
def test_second_opener_in_another_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """It is refused at once, told who holds the run, and writes nothing; readers go on reading."""
    before = files(tmp_path / "r")
    with pytest.raises(eventlog.RunLocked, match=f"held by process {holder.pid} on ") as caught:
        eventlog.store(tmp_path).open("r")
    assert caught.value.pid == holder.pid
    assert caught.value.since is not None
    assert abs((datetime.now(UTC) - caught.value.since).total_seconds()) < 600
    who = eventlog.store(tmp_path).holder("r")
    assert who is not None
    assert (who.pid, who.host, who.since) == caught.value.args[1:4]
    assert eventlog.store(tmp_path).read("r").lines[-1].seq == 5
    assert files(tmp_path / "r") == before
    holder.communicate("\n")
    assert eventlog.store(tmp_path).holder("r") is None
    assert goes_on(tmp_path).life == 3


@pytest.mark.fault("second opener")
def test_second_opener_in_the_same_thread_and_in_another(tmp_path: Path) -> None:
    """A lock on a descriptor of its own also excludes the same process."""
    with eventlog.store(tmp_path).create("r", at=AT, events=[OPENING]):
        with pytest.raises(eventlog.RunLocked) as caught:
            eventlog.store(tmp_path).open("r")
        assert caught.value.pid == os.getpid()
        found: list[type[BaseException]] = []

        def work() -> None:
            try:
                eventlog.store(tmp_path).open("r")
            except eventlog.RunLocked as error:
                found.append(type(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [eventlog.RunLocked]
    assert goes_on(tmp_path).life == 2


@pytest.mark.fault("lock file replaced")
@pytest.mark.parametrize("harm", ["deleted", "replaced", "directory moved"])
def test_lock_file_lost_while_held(tmp_path: Path, harm: str) -> None:
    """The next save says `LockLost`, writes nothing, and so does the close."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
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


@pytest.mark.fault("lock file replaced")
def test_lock_file_lost_before_the_close(tmp_path: Path) -> None:
    """The end of a log is written by its holder alone."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    (tmp_path / "r" / "lock").unlink()
    before = files(tmp_path / "r")
    with pytest.raises(eventlog.LockLost):
        log.close()
    assert files(tmp_path / "r") == before


@pytest.mark.fault("lock file replaced")
def test_lock_file_lost_in_the_middle_of_a_save(tmp_path: Path) -> None:
    """A new holder that scanned before the line was visible will never see it, so it must not be acknowledged."""

    class Losing(Disk):
        armed = False

        def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if self.armed:
                (tmp_path / "r" / "lock").unlink(missing_ok=True)
            return super().write_some(fd, data, offset)

    disk = Losing()
    log = eventlog.Directory(tmp_path, disk=disk).create("r", at=AT, events=[OPENING])
    disk.armed = True
    with pytest.raises(eventlog.LockLost):
        log.append(AT, [event(1)])
    with pytest.raises(eventlog.LogDead):
        log.append(AT, [event(1)])
    log.close()
    found = eventlog.store(tmp_path).read("r").head
    assert found is not None
    assert found.seq == 1


@pytest.mark.fault("lock file replaced")
def test_a_lock_file_replaced_while_it_is_being_taken(tmp_path: Path) -> None:
    """The file that was locked must be the one with the name, or two writers could each hold one."""
    made(tmp_path)
    lock = tmp_path / "r" / "lock"

    class Racing(Impatient):
        rounds = 0

        def try_lock(self, fd: int, *, shared: bool = False) -> bool:
            self.rounds += 1
            if self.rounds <= 2:
                lock.unlink()
                lock.touch()
            return super().try_lock(fd, shared=shared)

    disk = Racing()
    with eventlog.Directory(tmp_path, disk=disk).open("r") as log:
        assert disk.rounds == 5  # three tries at the file, and two at the directory
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

    with eventlog.Directory(tmp_path, disk=Waiting()).open("r") as log:
        assert log.seq == 4
    assert asking == -1


def test_an_opener_does_not_wait_for_ever_for_someone_who_asks(tmp_path: Path) -> None:
    """A foreign program that keeps a shared lock gets a clear refusal, not a hang."""
    made(tmp_path)
    asking = os.open(tmp_path / "r" / "lock", os.O_RDONLY)
    assert Disk().try_lock(asking, shared=True)

    with pytest.raises(eventlog.RunLocked, match="left no name"):
        eventlog.Directory(tmp_path, disk=Impatient()).open("r")
    os.close(asking)


@pytest.mark.fault("forked child")
@forks
@pytest.mark.parametrize("act", ["append", "close", "abandon", "exit"])
def test_a_forked_child_neither_writes_nor_releases(tmp_path: Path, act: str) -> None:
    """Lock and file are shared with the child; whatever the child does, they stay the parent's."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
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
        eventlog.store(tmp_path).open("r")
    assert log.append(AT, [event(1)]).seq == 2
    log.close()
    assert numbers(tmp_path) == [0, 1, 2]


@pytest.mark.fault("forked child")
@forks
def test_a_forked_child_of_a_busy_writer_does_not_wait_for_its_mutex(tmp_path: Path) -> None:
    """The mutex may be held for ever in the child's copy; the child must be refused, not hang."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    with file_log(log)._writer._mutex:  # noqa: SLF001 - as a thread in the middle of a save would hold it
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


FORK = """
import os, sys, time, eventlog
log = eventlog.store(sys.argv[1]).open("r")
began, begins = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(begins, b"!")
    time.sleep(60)
    os._exit(0)
os.read(began, 1)
print(pid, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
log.close() if sys.argv[2] == "closed" else log.abandon()
print("let go", flush=True)
sys.stdin.readline()
"""


@pytest.mark.fault("forked child")
@pytest.mark.parametrize("end", ["killed", "closed", "abandoned"])
def test_a_run_whose_holder_is_gone_is_free_while_a_forked_child_of_it_lives(tmp_path: Path, end: str) -> None:
    """The child may still act, and the next holder knows that. When the child has ended, all is well."""
    made(tmp_path)
    with child(FORK, tmp_path, end) as parent:
        assert parent.stdout is not None
        forked = int(parent.stdout.readline())
        try:
            if end == "killed":
                assert parent.wait() == -signal.SIGKILL
            else:
                assert parent.stdout.readline() == "let go\n"
            assert eventlog.store(tmp_path).holder("r") is None
            with eventlog.store(tmp_path).open("r") as log:
                assert log.lease_lost
                log.append(AT, [event(7)])
        finally:
            os.kill(forked, signal.SIGKILL)
            parent.communicate("\n")
    with contextlib.closing(_opened_once_alone(tmp_path)) as log:
        assert not log.lease_lost


def _opened_once_alone(runs: Path) -> eventlog.Log:
    """Open a run until no child of an earlier holder is left: the kernel may take a moment to end one."""
    log = eventlog.store(runs).open("r")
    for _ in range(200):
        if not log.lease_lost:
            break
        log.close()
        time.sleep(0.01)
        log = eventlog.store(runs).open("r")
    return log


@pytest.mark.fault("forked child")
def test_a_copy_of_the_lock_that_nobody_closes_keeps_no_run(tmp_path: Path) -> None:
    """A child that C code forked runs no handler of ours; a release unlocks, for every copy there is."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    copy = os.dup(file_log(log)._lock.fd)  # noqa: SLF001 (as a fork copies it)
    try:
        log.close()
        assert eventlog.store(tmp_path).holder("r") is None
        goes_on(tmp_path)
    finally:
        os.close(copy)


@pytest.mark.fault("forked child")
def test_a_lock_file_that_does_not_close_leaves_no_lock_on_the_directory(tmp_path: Path) -> None:
    """The next holder would take this process for a child of the one before."""
    fault = Fault(verbs=("close",), name="lock", error=errno.EIO)
    eventlog.Directory(tmp_path, disk=FaultyDisk(Disk(), fault)).create("r", at=AT, events=[OPENING]).close()
    with eventlog.store(tmp_path).open("r") as log:
        assert not log.lease_lost


@pytest.mark.fault("forked child")
def test_a_process_that_is_gone_is_never_named_as_the_holder(tmp_path: Path) -> None:
    """Whoever looks for it would find nothing, or a stranger."""
    made(tmp_path)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    lock = tmp_path / "r" / "lock"
    lock.write_text(json.dumps({"pid": gone.pid, "host": os.uname().nodename, "since": "2026-11-29T15:14:58Z"}))
    fd = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(eventlog.RunLocked, match="left no name") as caught:
            eventlog.store(tmp_path).open("r")
        assert caught.value.pid is None
        holder = eventlog.store(tmp_path).holder("r")
        assert holder is not None
        assert holder.pid == 0
    finally:
        os.close(fd)


@pytest.mark.fault("holder killed")
def test_a_killed_holder_leaves_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """The kernel drops the lock with the process; the pid left in the file decides nothing."""
    holder.kill()
    holder.wait()
    left = json.loads((tmp_path / "r" / "lock").read_text())
    assert left["pid"] == holder.pid
    assert eventlog.store(tmp_path).holder("r") is None
    log = goes_on(tmp_path)
    assert (log.seq, log.life) == (6, 3)


@pytest.mark.fault("holder killed")
@pytest.mark.parametrize("content", [b"", b"\0" * 512, b"{}", b'{"pid":"x"}', b"x" * 5000])
def test_a_name_of_a_living_process_or_rubbish_in_a_free_lock(tmp_path: Path, content: bytes) -> None:
    """A pid that another process has now, or bytes that mean nothing, never keep a run closed."""
    made(tmp_path)
    lock = tmp_path / "r" / "lock"
    mine = json.dumps({"pid": os.getpid(), "host": Disk().host(), "since": "2026-01-01T00:00:00Z"}).encode()
    for left in (mine, content):
        lock.write_bytes(left)
        assert eventlog.store(tmp_path).holder("r") is None
        eventlog.store(tmp_path).open("r").close()


@pytest.mark.fault("holder killed")
def test_a_holder_that_left_no_name(tmp_path: Path) -> None:
    """Whoever holds the kernel's lock holds the run, named or not."""
    made(tmp_path)
    fd = os.open(tmp_path / "r" / "lock", os.O_RDWR)
    assert Disk().try_lock(fd)

    with pytest.raises(eventlog.RunLocked, match="left no name") as caught:
        eventlog.Directory(tmp_path, disk=Impatient()).open("r")
    assert caught.value.pid is None
    who = eventlog.Directory(tmp_path, disk=Impatient()).holder("r")
    assert who is not None
    assert who.pid == 0
    os.close(fd)


@pytest.mark.fault("holder killed")
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
        eventlog.Directory(tmp_path, disk=Signing()).open("r")
    os.close(fd)


RACE = """
import sys, os, eventlog
from datetime import datetime, UTC
sys.stdin.readline()
try:
    log = eventlog.store(sys.argv[1]).open("r")
except eventlog.RunLocked as error:
    print("refused", error.pid, flush=True)
else:
    log.append(datetime.now(UTC), [b'{"type":"won"}'])
    print("won", os.getpid(), flush=True)
    sys.stdin.readline()
    log.close()
"""


@pytest.mark.fault("many resumers at once")
def test_20_processes_open_one_run_at_once(tmp_path: Path) -> None:
    """One goes on, nineteen are told who holds it, and only the one writes."""
    made(tmp_path, end="abandon")
    # This process lives and would be believed to hold the run for the microseconds until the winner has signed.
    (tmp_path / "r" / "lock").write_bytes(b"")
    with contextlib.ExitStack() as ends:
        processes = [ends.enter_context(child(RACE, tmp_path)) for _ in range(20)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = []
        for process in processes:
            assert process.stdout is not None
            answers.append(process.stdout.readline().split())
        for process in processes:
            process.communicate("\n")
    winners = [pid for what, pid in answers if what == "won"]
    assert len(winners) == 1
    # None: the winner was not given the processor between locking and signing for as long as the others ask.
    named = [pid for what, pid in answers if what == "refused"]
    assert len(named) == 19
    assert {*winners} <= {*named} <= {*winners, "None"}
    reading = eventlog.store(tmp_path).read("r")
    assert [bytes(raw) for raw in reading.lines[-1].events] == [b'{"type":"won"}']
    assert (reading.lines[-1].seq, reading.closed) == (5, True)


@pytest.mark.fault("lock file replaced")
def test_an_opener_refused_by_damage_leaves_even_the_lock_file_as_it_was(tmp_path: Path) -> None:
    """Damage touches nothing on disk: the holder's name it wrote is put back."""
    path = made(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    for left in (b"", b"short", b"y" * 3000):
        (tmp_path / "r" / "lock").write_bytes(left)
        with pytest.raises(eventlog.LogDamaged):
            eventlog.store(tmp_path).open("r")
        assert (tmp_path / "r" / "lock").read_bytes() == left
    assert segment(tmp_path).exists()
