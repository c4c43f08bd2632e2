"""Names and places: what may be a run, what stands in its way, and what is said where nothing can be written."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import strategies as st

import eventlog
from eventlog import simdisk
from eventlog._disk import Disk
from tests.eventlog.making import AT, OPENING, event, files, goes_on, head, made, numbers, segment
from tests.support import ROOT
from tests.support.disks import failing
from tests.support.faulty_disk import Fault, FaultyDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD_IDS = [
    "../x", "a/b", "a\\b", "", ".", "..", "x" * 129, "x" * 300, "a\0b", "a\n", "a\nb", "-rf", "con", "nul.txt", "com1",
    "lpt9.x", "A", "aB", "é", "e\u0301", "a ", "a.", "_a", ".a", "a:b", "~", "a*", "\u0131", "\uff41",
]  # fmt: skip


class Untouched(Disk):
    """Fails the test at any touch of the file system. Where a path leads is not looked up."""

    def __getattribute__(self, verb: str) -> object:
        if verb == "absolute":
            return Path.absolute
        raise AssertionError(verb)


@pytest.mark.fault("bad run id")
@pytest.mark.parametrize("run", BAD_IDS)
def test_ids_that_are_refused_before_the_file_system_is_touched(tmp_path: Path, run: str) -> None:
    """No id climbs out, hides, collides with another on any file system, or means a device."""
    disk = Untouched()
    for act in ("open", "read", "scan", "verify", "holder"):
        with pytest.raises(eventlog.BadRunId):
            getattr(eventlog.Directory(tmp_path, disk=disk), act)(run)
    with pytest.raises(eventlog.BadRunId) as caught:
        eventlog.Directory(tmp_path, disk=disk).create(run, at=AT, events=[])
    assert len(str(caught.value)) < 300
    with pytest.raises(eventlog.BadRunId):
        eventlog.check_id(run)


@pytest.mark.parametrize("run", [7, None, b"r", Path("r")])
def test_an_id_that_is_not_text(run: object) -> None:
    """A caller's slip is named as such."""
    with pytest.raises(eventlog.BadRunId, match="not text"):
        eventlog.check_id(run)  # type: ignore[arg-type] # the fault


@pytest.mark.parametrize(
    "run", ["a", "0", "x" * 128, "triage-20260101-abcd1234", "a.b_c-d", "context", "com10", "null"]
)
def test_ids_that_are_good(tmp_path: Path, run: str) -> None:
    """The rule refuses no more than it must."""
    assert eventlog.check_id(run) == run
    eventlog.store(tmp_path).create(run, at=AT, events=[OPENING]).close()
    assert eventlog.store(tmp_path).runs() == [run]


@hypothesis.given(run=st.text(max_size=140))
def test_any_accepted_id_is_one_plain_lower_case_name(run: str) -> None:
    """Whatever is accepted is ASCII, has one spelling, and is its own last path component."""
    try:
        eventlog.check_id(run)
    except eventlog.BadRunId:
        return
    assert run.isascii()
    assert run == run.lower()
    assert Path(run).name == run
    assert not run.startswith((".", "-"))


def test_an_id_is_never_used_twice(tmp_path: Path) -> None:
    """Creating an existing run is an error, live or closed, and changes nothing."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    before = files(tmp_path / "r")
    with pytest.raises(eventlog.RunExists):
        eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    assert files(tmp_path / "r") == before
    log.close()
    segment(tmp_path).unlink()
    with pytest.raises(eventlog.RunExists):
        eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])


@pytest.mark.fault("link, FIFO or replaced file")
@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "fifo"])
def test_something_else_has_the_runs_name(tmp_path: Path, kind: str) -> None:
    """A run's directory that is a link, a file or a FIFO is refused, and a link's target stays untouched."""
    target = tmp_path / "target"
    made(target)
    before = files(target / "r")
    place = tmp_path / "runs" / "r"
    place.parent.mkdir()
    if kind == "file":
        place.write_bytes(b"mine")
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(target / "r" if kind == "link" else target / "nowhere")
    for act in ("read", "open", "verify"):
        with pytest.raises(eventlog.NoSuchRun, match="not a directory"):
            getattr(eventlog.store(tmp_path / "runs"), act)("r")
    with pytest.raises(eventlog.RunExists):
        eventlog.store(tmp_path / "runs").create("r", at=AT, events=[])
    assert eventlog.store(tmp_path / "runs").runs() == []
    assert files(target / "r") == before
    assert not (target / "nowhere").exists()


def _in_the_way(path: Path, kind: str, target: Path) -> None:
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made_socket:
            made_socket.bind(os.path.relpath(path))
    else:
        path.mkdir()


@pytest.mark.fault("link, FIFO or replaced file")
@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "socket"])
def test_segment_is_not_a_file(tmp_path: Path, kind: str) -> None:
    """Never a hang, never a write elsewhere: damage, for reader and writer alike."""
    path = made(tmp_path)
    target = tmp_path / "target"
    target.write_bytes(path.read_bytes())
    before = target.read_bytes()
    _in_the_way(path, kind, target)
    for act in ("read", "open"):
        with pytest.raises(eventlog.LogDamaged, match="not a regular file"):
            getattr(eventlog.store(tmp_path), act)("r")
    assert eventlog.store(tmp_path).runs() == ["r"]
    assert target.read_bytes() == before


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_lock_is_not_a_file(tmp_path: Path, kind: str) -> None:
    """A lock that cannot be held excludes nobody, so the writer is refused; readers do not need it."""
    made(tmp_path)
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    _in_the_way(tmp_path / "r" / "lock", kind, target)
    for act in ("open", "holder"):
        with pytest.raises(eventlog.DiskFailed, match="not a regular file"):
            getattr(eventlog.store(tmp_path), act)("r")
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]
    assert target.read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_head_is_not_a_file(tmp_path: Path, kind: str) -> None:
    """A head that is no file is no witness; the next writer replaces the name and leaves a link's target alone."""
    made(tmp_path)
    target = tmp_path / "target"
    target.write_bytes(head(tmp_path).read_bytes())
    before = target.read_bytes()
    _in_the_way(head(tmp_path), kind, target)
    assert eventlog.store(tmp_path).read("r").head is None
    goes_on(tmp_path)
    assert target.read_bytes() == before
    assert head(tmp_path).is_file()
    assert not head(tmp_path).is_symlink()


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    """Files 0600 and directories 0700, whatever the process's umask lets through or takes away."""
    for umask in (0o000, 0o022, 0o777):
        runs = tmp_path / str(umask)
        old = os.umask(umask)
        try:
            made(runs)
            log = eventlog.store(runs).open("r")
            log.append(AT, [event(1)])
            log.abandon()
        finally:
            os.umask(old)
        assert {path.name: path.stat().st_mode & 0o7777 for path in (runs, runs / "r")} == {
            str(umask): 0o700,
            "r": 0o700,
        }
        assert {path.stat().st_mode & 0o7777 for path in (runs / "r").iterdir()} == {0o600}


@pytest.mark.parametrize("where", [(), ("a",), ("a", "b", "c")])
def test_the_directory_of_runs_is_made_when_it_is_missing(tmp_path: Path, where: tuple[str, ...]) -> None:
    """The default `./runs` need not exist before the first run."""
    runs = tmp_path.joinpath(*where)
    eventlog.store(runs).create("r", at=AT, events=[OPENING]).close()
    assert numbers(runs) == [0, 1]


@pytest.mark.fault("power cut after a create that failed")
@pytest.mark.parametrize("error", [errno.EMFILE, simdisk.Killed])
@pytest.mark.parametrize("where", ["/runs", "/a/b/runs"])
def test_the_directory_of_runs_was_made_by_a_create_that_went_no_further(
    where: str, error: int | type[BaseException]
) -> None:
    """Its name is not durable then, and the power would take every acknowledged line with it."""
    for nth in range(1, 8):
        machine = simdisk.Machine()
        first = simdisk.Process(machine)
        fault = Fault(verbs=("mkdir", "sync_dir"), nth=nth, error=error)
        with contextlib.suppress(eventlog.DiskFailed, simdisk.Killed):
            eventlog.Directory(where, disk=FaultyDisk(first, fault)).create("r", at=AT, events=[OPENING])
        first.die()
        eventlog.Directory(where, disk=simdisk.Process(machine, pid=2)).create("s", at=AT, events=[OPENING])
        for cut in simdisk.cuts(machine.trace, first=len(machine.trace)):
            after = eventlog.Directory(where, disk=simdisk.Process(simdisk.Machine(cut.image)))
            assert [line.seq for line in after.read("s").lines] == [0, 1], nth


def test_a_directory_that_never_became_a_run(tmp_path: Path) -> None:
    """Without segment, head and snapshot it is no run: not listed, not opened, its name free."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "lock").touch()
    (tmp_path / "r" / ".tmp-00-seg-000001.jsonl").write_bytes(b"half")
    before = files(tmp_path / "r")
    for act in ("read", "open", "scan", "verify"):
        with pytest.raises(eventlog.NoSuchRun, match="never became a run"):
            getattr(eventlog.store(tmp_path), act)("r")
    assert eventlog.store(tmp_path).runs() == []
    assert files(tmp_path / "r") == before
    eventlog.store(tmp_path).create("r", at=AT, events=[OPENING]).close()
    assert sorted(files(tmp_path / "r")) == ["head", "lock", "seg-000001.jsonl"]


def test_a_run_that_is_being_made_by_another(tmp_path: Path) -> None:
    """Two creators of one id: the one that does not hold the lock is refused."""
    (tmp_path / "r").mkdir()
    fd = os.open(tmp_path / "r" / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    assert Disk().try_lock(fd)
    with pytest.raises(eventlog.RunLocked):
        eventlog.store(tmp_path).create("r", at=AT, events=[])
    os.close(fd)


def test_a_run_made_by_another_just_before_the_lock_was_ours(tmp_path: Path) -> None:
    """Whether the run exists is asked again under the lock."""

    class Late(Disk):
        def mkdir(self, path: Path, *, within: int | None = None) -> None:
            made(path.parent, path.name)
            super().mkdir(path, within=within)

        def list(self, path: Path) -> list[str]:
            self.asked = getattr(self, "asked", 0) + 1
            return [] if self.asked == 1 else super().list(path)

    with pytest.raises(eventlog.RunExists):
        eventlog.Directory(tmp_path, disk=Late()).create("r", at=AT, events=[])
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_the_directory_of_runs_made_by_another_at_the_same_time(tmp_path: Path) -> None:
    """Two first runs of one directory are no reason for either to fail."""

    class Late(Disk):
        def mkdir(self, path: Path, *, within: int | None = None) -> None:
            if path.name == "runs":
                path.mkdir()
            super().mkdir(path, within=within)

    eventlog.Directory(tmp_path / "runs", disk=Late()).create("r", at=AT, events=[]).close()
    assert numbers(tmp_path / "runs") == [0]


def test_no_such_run(tmp_path: Path) -> None:
    """An unknown id, or a directory of runs that does not exist, gets a sentence and creates nothing."""
    for runs in (tmp_path, tmp_path / "nowhere"):
        for act in ("read", "open", "scan", "verify"):
            with pytest.raises(eventlog.NoSuchRun, match="no run r in"):
                getattr(eventlog.store(runs), act)("r")
    assert list(tmp_path.iterdir()) == []
    assert eventlog.store(tmp_path / "nowhere").runs() == []
    assert eventlog.store(tmp_path).holder("r") is None


def test_a_runs_directory_that_is_a_file(tmp_path: Path) -> None:
    """`--runs FILE` gets a sentence from every door."""
    path = tmp_path / "file"
    path.write_bytes(b"mine")
    for runs in (path, path / "below"):
        for act in ("read", "open", "scan", "verify"):
            with pytest.raises(eventlog.NotARunsDirectory):
                getattr(eventlog.store(runs), act)("r")
        with pytest.raises(eventlog.NotARunsDirectory):
            eventlog.store(runs).create("r", at=AT, events=[])
        with pytest.raises(eventlog.NotARunsDirectory):
            eventlog.store(runs).runs()
    assert path.read_bytes() == b"mine"


AS_NOBODY = """
import os, sys, eventlog
from datetime import datetime, UTC
os.setgid(65534); os.setuid(65534)
runs = sys.argv[1]
def said(act):
    try:
        return type(act()).__name__
    except eventlog.LogError as error:
        assert str(error) and error.hint
        return type(error).__name__
store = eventlog.store(runs)
now = datetime.now(UTC)
print(said(lambda: store.open("r")), said(lambda: store.read("r")), said(store.runs),
      said(lambda: store.create("new", at=now, events=[])),
      said(lambda: store.verify("r")), said(lambda: store.holder("r")))
"""


def _as_nobody(runs: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, runs],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    return done.stdout.split()


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Make a directory that other users can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.fault("read-only directory")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone without rights")
def test_a_directory_that_only_others_may_write(open_place: Path) -> None:
    """Readers work, a writer says so before anything else, and what is forbidden is said in a sentence."""
    runs = open_place / "runs"
    made(runs)
    for path in (open_place, runs, runs / "r"):
        path.chmod(0o755)
    for path in (runs / "r").iterdir():
        path.chmod(0o644)
    before = files(runs / "r")
    assert _as_nobody(runs) == ["ReadOnly", "Reading", "list", "ReadOnly", "Verdict", "NoneType"]
    segment(runs).chmod(0o600)
    assert _as_nobody(runs)[1] == "DiskFailed"
    (runs / "r").chmod(0o700)
    assert _as_nobody(runs) == ["DiskFailed", "DiskFailed", "list", "ReadOnly", "DiskFailed", "DiskFailed"]
    runs.chmod(0o700)
    assert _as_nobody(runs)[2] == "NotARunsDirectory"
    assert files(runs / "r") == before


def test_a_read_only_file_system(tmp_path: Path) -> None:
    """EROFS at the first write is told as what it is."""
    made(tmp_path)

    class Frozen(Disk):
        def open(
            self, path: Path, *, write: bool = False, create: bool = False, new: bool = False, within: int | None = None
        ) -> int:
            if write:
                raise failing(30)
            return super().open(path, write=write, create=create, new=new, within=within)

    before = files(tmp_path / "r")
    with pytest.raises(eventlog.ReadOnly):
        eventlog.Directory(tmp_path, disk=Frozen()).open("r")
    assert files(tmp_path / "r") == before


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    """By the time in the first line: neither the name nor the directory's own time says when a run began."""
    for number, run in enumerate(["b", "c", "a"]):
        eventlog.store(tmp_path).create(run, at=AT + timedelta(seconds=number), events=[OPENING]).close()
    goes_on(tmp_path, "b")
    made(tmp_path, "z")
    segment(tmp_path, "z").write_bytes(b"rubbish")
    made(tmp_path, "y")
    segment(tmp_path, "y").unlink()
    (tmp_path / "empty").mkdir()
    (tmp_path / "Not-An-Id").mkdir()
    (tmp_path / "file").write_bytes(b"")
    assert eventlog.store(tmp_path).runs() == ["a", "c", "b", "z", "y"]
    assert eventlog.store(str(tmp_path)).runs() == ["a", "c", "b", "z", "y"]


def test_a_run_whose_beginning_cannot_be_read_is_still_listed(tmp_path: Path) -> None:
    """A bad disk must not hide a run from the list."""
    made(tmp_path, "a")
    made(tmp_path, "b")

    class Bad(Disk):
        def pread(self, fd: int, size: int, offset: int) -> bytes:  # noqa: ARG002 - the verb's signature
            raise failing(5)

        def list(self, path: Path) -> list[str]:
            if path.name == "a":
                raise failing(5)
            return super().list(path)

    assert eventlog.Directory(tmp_path, disk=Bad()).runs() == ["b", "a"]
    with pytest.raises(eventlog.DiskFailed):
        eventlog.Directory(tmp_path, disk=Bad()).read("b")


def test_a_snapshot_alone_makes_a_run(tmp_path: Path) -> None:
    """A directory that holds any durable trace of a run is one, and its missing segment is damage."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "snap-41.json").write_bytes(b"{}")
    assert eventlog.store(tmp_path).runs() == ["r"]
    with pytest.raises(eventlog.LogDamaged, match="missing"):
        eventlog.store(tmp_path).read("r")


@pytest.mark.fault("a place of runs that nobody named")
@pytest.mark.parametrize("runs", [None, "", 7, b"runs"])
def test_a_place_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Any) -> None:
    """An environment variable that is not set makes no directory named None, nor takes the working directory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(eventlog.NotARunsDirectory, match="give a path, the URL of a database, or a store"):
        eventlog.store(runs).create("r", at=AT, events=[OPENING])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault("changed working directory")
def test_a_relative_path_stays_where_it_was_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.chdir` in a tool moves no run, and the store still says the path that it was given."""
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    runs = eventlog.store("runs")
    with runs.create("r", at=AT, events=[OPENING]) as log:
        monkeypatch.chdir("other")
        assert log.append(AT, [event(1)]).seq == 2
        log.compact(b"{}", 1)
    assert [line.seq for line in runs.read("r").lines] == [0, 1, 2, 3]
    assert runs.runs() == ["r"]
    assert (str(runs), list((tmp_path / "other").iterdir())) == ("runs", [])


@pytest.mark.fault("changed working directory")
def test_a_relative_path_in_a_working_directory_that_is_gone_is_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can say where that would be; an absolute path is one all the same."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(eventlog.NotARunsDirectory, match="No such file or directory"):
        eventlog.store("runs")
    assert eventlog.store(tmp_path / "runs").runs() == []
