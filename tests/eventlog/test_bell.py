"""The doorbell and the presence of others: hints by which processes that share a place for runs find work soon."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
from eventlog import _bell, simdisk
from tests.support.forkserver import ForkServer


def test_every_listener_hears_every_ring_once(tmp_path: Path) -> None:
    """What rang before somebody listened is found by the look at all runs that each begins with."""
    store = eventlog.store(tmp_path)
    store.bell().ring("before")
    one, other = store.bell(), eventlog.store(tmp_path).bell()
    assert (one.heard(), one.heard()) == ([], [])
    for run in ("a", "b", "a"):
        other.ring(run)
    assert (one.heard(), one.heard(), other.heard()) == (["a", "b"], [], ["a", "b"])
    assert (tmp_path / ".bell").stat().st_mode & 0o777 == 0o600
    assert store.names() == []


def test_a_bell_that_rang_long_is_begun_anew_and_still_heard(tmp_path: Path) -> None:
    """Its file would grow for ever."""
    bell = eventlog.store(tmp_path).bell()
    for number in range(1000):
        bell.ring(f"{number}-{'x' * 100}")
    assert bell.heard()[-1].startswith("999-")
    assert (tmp_path / ".bell").stat().st_size <= _bell.MOST + 200
    bell.ring("last")
    assert bell.heard() == ["last"]


def test_half_a_line_is_heard_when_it_is_whole(tmp_path: Path) -> None:
    """A write may be seen before its end."""
    bell = eventlog.store(tmp_path).bell()
    bell.ring("one")
    with (tmp_path / ".bell").open("ab") as file:
        file.write(b"tw")
    assert bell.heard() == ["one"]
    bell.ring("o")
    assert bell.heard() == ["two"]


@pytest.mark.fault("a doorbell that is no file of ours")
def test_a_hostile_bell_hurts_nobody(tmp_path: Path) -> None:
    """A link, a FIFO, a directory, megabytes of anything: no error, no wait, no name that is no run's."""
    path, victim = tmp_path / ".bell", tmp_path / "victim"
    victim.write_text("a\n")
    plants: list[Callable[[], None]] = [
        lambda: path.symlink_to(victim),
        lambda: path.hardlink_to(victim),
        lambda: os.mkfifo(path),
        path.mkdir,
    ]
    for plant in plants:
        bell = eventlog.store(tmp_path).bell()
        plant()
        bell.ring("x")
        assert set(bell.heard()) <= {"a"}
        (path.rmdir if path.is_dir() else path.unlink)()
    assert victim.read_text() == "a\n"
    bell = eventlog.store(tmp_path).bell()
    path.write_bytes(b"../../etc\n\xff\xfe\nCON\n" + b"\n" * 4_000_000 + b"good\n")
    assert bell.heard() == ["good"]
    eventlog.Directory("/nowhere", disk=simdisk.Process(simdisk.Machine())).bell().ring("x")


def there(runs: Path) -> list[Path]:
    """The files of those who are there."""
    return [*(runs / ".workers").iterdir()]


def enters_and_dies(runs: str) -> None:
    """Be there, and end by SIGKILL."""
    _kept = eventlog.store(runs).enter()
    os.kill(os.getpid(), 9)


def forks_a_child_that_stays(runs: str) -> int:
    """Be there, and leave a child behind that lives on."""
    _kept = eventlog.store(runs).enter()
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(said, b"!")  # the child has closed its copies
        signal.pause()
    os.read(heard, 1)
    return child


@pytest.mark.fault("a worker that dies")
def test_the_death_of_one_is_noticed_by_each_of_the_others_once(tmp_path: Path, forks: ForkServer) -> None:
    """The kernel frees the lock; whoever looks first removes the file, and the next one still notices."""
    one, other = eventlog.store(tmp_path).enter(), eventlog.store(tmp_path).enter()
    assert (one.departed(), other.departed()) == (False, False)
    third = eventlog.store(tmp_path).enter()
    assert (one.departed(), other.departed(), len(there(tmp_path))) == (False, False, 3)
    third.leave()
    third.leave()
    assert [each.departed() for each in (one, one, other, other)] == [True, False, True, False]
    assert forks.run(enters_and_dies, runs=tmp_path).killed
    assert [one.departed(), one.departed()] == [True, False]
    with one, other:
        assert len(there(tmp_path)) == 2
    assert there(tmp_path) == []


@pytest.mark.fault("a worker that dies")
def test_a_child_that_outlives_a_process_does_not_stand_in_for_it(tmp_path: Path, forks: ForkServer) -> None:
    """It would keep the lock of its parent, which carries nothing any more."""
    one = eventlog.store(tmp_path).enter()
    child = forks.run(forks_a_child_that_stays, runs=tmp_path).value
    try:
        assert one.departed()
    finally:
        os.kill(child, 9)
        one.leave()


@pytest.mark.fault("a worker's file is taken away before it is locked")
def test_one_whose_file_was_removed_before_it_was_locked_makes_another(tmp_path: Path) -> None:
    """Somebody who looked in between took it for a dead one's."""

    class Looked(eventlog.Disk):
        looks = 0

        def try_lock(self, fd: int, *, shared: bool = False) -> bool:
            self.looks += 1
            if self.looks == 1:
                assert other.departed()
            return super().try_lock(fd, shared=shared)

    other = eventlog.store(tmp_path).enter()
    with eventlog.Directory(tmp_path, disk=Looked()).enter(), other:
        assert len(there(tmp_path)) == 2
        assert not other.departed()


def test_a_place_where_nobody_may_write_has_no_presence_and_no_error(tmp_path: Path) -> None:
    """A file in the way stands for it."""
    (tmp_path / ".workers").touch()
    with eventlog.store(tmp_path).enter() as here:
        assert not here.departed()


@pytest.mark.fault("a doorbell that is no file of ours")
def test_a_link_in_the_place_of_those_who_are_there_empties_no_other_directory(tmp_path: Path) -> None:
    """A file that nobody holds is taken for one whose process died, and removed."""
    store, theirs = eventlog.store(tmp_path / "runs"), tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious").touch()
    with store.enter() as swapped:
        (tmp_path / "runs/.workers").rename(tmp_path / "aside")
        (tmp_path / "runs/.workers").symlink_to(theirs)
        with store.enter() as late:
            swapped.departed()
            assert not late.departed()
    assert [path.name for path in theirs.iterdir()] == ["precious"]
    assert list((tmp_path / "aside").iterdir()) == []
