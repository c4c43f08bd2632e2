"""Attacks by who can write beside a log: a writer takes no directory that is not its user's alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
from tests.eventlog.making import AT, OPENING, goes_on, made
from tests.support.disks import Quick

OTHERS: dict[str, str] = {
    "another owner": "it belongs to user 4711",
    "its group": "its group may write",
    "everybody": "everybody may write",
}


class Foreign(Quick):
    """Says that some directories belong to somebody else."""

    def __init__(self, *paths: Path) -> None:
        self.paths = paths

    def fstat(self, fd: int) -> os.stat_result:
        """Look, and name another owner."""
        found = super().fstat(fd)
        theirs = any(path.exists() and found.st_ino == path.stat().st_ino for path in self.paths)
        return os.stat_result((*found[:4], 4711, *found[5:])) if theirs else found


def opened_up(path: Path, whom: str) -> eventlog.Disk:
    """Let somebody else write to a directory; give the disk that sees it."""
    path.chmod({"another owner": 0o700, "its group": 0o770, "everybody": 0o1777}[whom])
    return Foreign(path) if whom == "another owner" else Quick()


@pytest.mark.fault("a directory that somebody else may write to")
@pytest.mark.parametrize("whom", OTHERS)
@pytest.mark.parametrize("which", ["the runs", "the run"])
def test_a_planted_run_is_neither_opened_nor_made_unless_force_insists(tmp_path: Path, which: str, whom: str) -> None:
    """A forged yes in it would be carried out. Whoever only reads believes nothing."""
    runs = tmp_path / "runs"
    made(runs)
    (runs / "new").mkdir(0o700)
    for run in ("r", "new"):
        disk = opened_up(runs if which == "the runs" else runs / run, whom)
        before = sorted(os.walk(tmp_path))
        begin: Callable[[eventlog.Store], eventlog.Log] = (
            (lambda store: store.open("r"))
            if run == "r"
            else (lambda store: store.create("new", at=AT, events=[OPENING]))
        )
        with pytest.raises(eventlog.Untrusted, match=OTHERS[whom]):
            begin(eventlog.Directory(runs, disk=disk))
        assert sorted(os.walk(tmp_path)) == before
        assert len(eventlog.Directory(runs, disk=disk).read("r").lines) == 5
        begin(eventlog.Directory(runs, disk=disk, force=True)).close()


@pytest.mark.fault("an inbox that locks its run's user out")
@pytest.mark.parametrize("which", ["the runs", "the run"])
def test_whoever_may_not_open_a_run_leaves_no_request_and_no_inbox_there(tmp_path: Path, which: str) -> None:
    """An inbox that root makes in another user's run would be root's alone, and take no answer ever after."""
    runs = tmp_path / "runs"
    made(runs)
    disk = opened_up(runs if which == "the runs" else runs / "r", "another owner")
    with pytest.raises(eventlog.Untrusted):
        eventlog.Directory(runs, disk=disk).post("r", "stop", b"{}")
    assert not (runs / "r" / "inbox").exists()
    assert eventlog.Directory(runs, disk=disk, force=True).post("r", "stop", b"{}")


@pytest.mark.fault("a directory planted in a sticky folder")
def test_a_link_planted_for_the_runs_counts_for_what_it_leads_to(tmp_path: Path) -> None:
    """In /tmp anybody can take the name first. A link to a directory of one's own is a way to keep runs elsewhere."""
    planted, own, link = tmp_path / "planted", tmp_path / "own", tmp_path / "runs"
    for path, mode in ((planted, 0o777), (own, 0o700)):
        path.mkdir()
        path.chmod(mode)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        if path == planted:
            with pytest.raises(eventlog.Untrusted):
                eventlog.store(link).create("r", at=AT, events=[OPENING])
        else:
            made(link)
    assert (list(planted.iterdir()), [path.name for path in own.iterdir()]) == ([], ["r"])


def test_what_this_makes_itself_is_this_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    """So nobody has to know of modes who never made the directory."""
    was = os.umask(0)
    try:
        made(tmp_path / "a" / "runs")
    finally:
        os.umask(was)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("a/**/") if path != tmp_path}
    assert modes == {0o700}
    goes_on(tmp_path / "a" / "runs")


class Swaps(Quick):
    """Swaps a directory for a link to another one, once, just after a verb."""

    def __init__(self, verb: str, directory: Path, victim: Path) -> None:
        self.done = False
        own = getattr(self, verb)

        def swapping(*given: Any, **named: Any) -> Any:
            result = own(*given, **named)
            if not self.done and directory.exists() and (verb != "open_dir" or given[0] == directory):
                self.done = True
                directory.rename(directory.with_name("moved"))
                directory.symlink_to(victim)
            return result

        setattr(self, verb, swapping)


@pytest.mark.fault("a directory swapped for a link within a start")
@pytest.mark.parametrize("verb", ["open_dir", "try_lock", "sync", "rename"])
@pytest.mark.parametrize("how", ["open", "create"])
def test_nothing_is_written_where_a_swapped_directory_leads(tmp_path: Path, how: str, verb: str) -> None:
    """Whoever can write above the runs can swap at any step; what was opened stays what it is."""
    victim, runs = tmp_path / "victim", tmp_path / "runs"
    victim.mkdir()
    (victim / ".tmp-theirs").touch()
    if how == "open":
        made(runs, end="abandon")
    store = eventlog.Directory(runs, disk=Swaps(verb, runs / "r", victim))
    with pytest.raises((eventlog.LockLost, eventlog.RunLocked, eventlog.DiskFailed)):
        store.open("r") if how == "open" else store.create("r", at=AT, events=[OPENING])
    assert [path.name for path in victim.iterdir()] == [".tmp-theirs"]


@pytest.mark.fault("a lock file replaced by a link")
def test_a_lock_that_is_a_second_name_of_another_file_does_not_empty_that_file(tmp_path: Path) -> None:
    """A holder's name would be written over its first bytes, and a proper close would cut it to nothing."""
    victim = tmp_path / "victim"
    victim.write_text("precious" * 100)
    made(tmp_path)
    lock = tmp_path / "r" / "lock"
    lock.unlink()
    lock.hardlink_to(victim)
    goes_on(tmp_path)
    assert victim.read_text() == "precious" * 100
    assert lock.stat().st_nlink == 1
    lock.unlink()
    lock.symlink_to(victim)
    with pytest.raises(eventlog.DiskFailed, match="not a regular file"):
        eventlog.store(tmp_path).open("r")
    assert victim.read_text() == "precious" * 100


@pytest.mark.fault("a lock file replaced by a link")
def test_a_lock_with_a_second_name_still_keeps_a_second_writer_out(tmp_path: Path) -> None:
    """A backup of hard links must not set the lock free."""
    made(tmp_path)
    with eventlog.store(tmp_path).open("r") as log:
        (tmp_path / "backup").hardlink_to(tmp_path / "r" / "lock")
        with pytest.raises(eventlog.RunLocked):
            eventlog.store(tmp_path).open("r")
        log.append(AT, [OPENING])


@pytest.mark.parametrize("call", ["fchmod", "fstat"])
def test_an_open_that_fails_half_way_leaks_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A process that carries runs for months would come to have none left."""

    def fails(*_: object) -> None:
        raise PermissionError

    (tmp_path / "there").touch()
    free = os.dup(0)
    os.close(free)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(PermissionError):
            eventlog.DISK.open(tmp_path / ("new" if call == "fchmod" else "there"), write=True, create=True)
    again = os.dup(0)
    os.close(again)
    assert again == free
