"""The seams that the sweep stands on: the runner's `disk=`, the points of one life, time that nobody waits for."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import threading
import time
from pathlib import Path

import pytest

import eventlog
import runner
from runner import crashtest
from runner.crashtest._counted import Counted, Routed
from runner.crashtest._points import Points, anywhere, may_leave_open, may_lose_a_reply
from runner.crashtest._threads import Threads
from runner.crashtest._virtual import Stuck, Time, VirtualClock, VirtualLoop

RUNS = Path("/runs")


@runner.tool(approval=True)
def send(call: runner.Call) -> str:
    """Send something."""
    call.workspace.write_text("sent.txt", call.key)
    return "sent"


def clerk(*script: runner.Reply | str) -> runner.Agent:
    """An agent that sends."""
    return runner.Agent(model=runner.ScriptedModel(script), tools=[send])


def test_a_run_lives_on_whatever_disk_it_is_given(tmp_path: Path) -> None:
    """Started, read, answered, refused, resumed, stopped: no file of the log outside of the simulated machine."""
    machine = crashtest.Machine()
    agent = clerk(runner.calls(("send", {}), ("send", {})), "done")
    workspace = tmp_path / "place"
    workspace.mkdir()
    disk = Routed(crashtest.Process(machine), workspace, Points())
    asked = runner.start_sync(agent, "send", runs=RUNS, run="r", workspace=workspace, disk=disk)
    assert isinstance(asked, runner.Paused)
    runner.approve("r", "1.0-approve", "ada", runs=RUNS, disk=disk)
    runner.refuse("r", "1.1-approve", "ada", "once is enough", runs=RUNS, disk=disk)
    done = runner.resume_sync("r", agent, runs=RUNS, disk=disk)
    assert isinstance(done, runner.Finished)
    state = runner.read("r", RUNS, disk=disk)
    assert state.phase == "done"
    assert [path.name for path in workspace.iterdir()] == ["sent.txt"]
    other = runner.start_sync(agent, "send", runs=RUNS, run="s", workspace=workspace, disk=disk)
    assert isinstance(other, runner.Paused)
    assert runner.stop("s", "ada", runs=RUNS, disk=disk).stopped is not None
    with pytest.raises(runner.AlreadyAnswered):
        runner.settle("r", "1.0-approve", "ada", "rerun", runs=RUNS, disk=disk)
    started = eventlog.read(RUNS, "r", disk=disk).lines[1].events[0]
    assert b'"host":"simulated"' in bytes(started)
    assert not RUNS.exists()


class Beside(crashtest.Passing):
    """A simulated process whose files under `folder` are on another disk."""

    def __init__(self, process: crashtest.Process, other: eventlog.Disk, folder: Path) -> None:
        """Stand before both."""
        super().__init__(process)
        self._other, self._folder = other, folder
        self._theirs: set[int] = set()

    def _at(self, path: Path | str) -> eventlog.Disk:
        return self._other if Path(path).is_relative_to(self._folder) else self.inner

    def _of(self, fd: int) -> eventlog.Disk:
        return self._other if fd in self._theirs else self.inner

    def open(self, path: Path, *, write: bool = False, create: bool = False, new: bool = False) -> int:
        """Open where it is."""
        fd = self._at(path).open(path, write=write, create=create, new=new)
        if self._at(path) is self._other:
            self._theirs.add(fd)
        return fd

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write."""
        return self._of(fd).write_some(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Sync."""
        self._of(fd).sync(fd)

    def sync_dir(self, path: Path) -> bool:
        """Sync a directory."""
        return self._at(path).sync_dir(path)

    def rename(self, source: Path, target: Path) -> None:
        """Rename."""
        self._at(target).rename(source, target)

    def unlink(self, path: Path) -> None:
        """Remove."""
        self._at(path).unlink(path)

    def chmod(self, path: Path, mode: int) -> None:
        """Set a mode."""
        self._at(path).chmod(path, mode)

    def stat(self, path: Path | str) -> os.stat_result:
        """Look."""
        return self._at(path).stat(path)

    def close(self, fd: int) -> None:
        """Close."""
        self._of(fd).close(fd)
        self._theirs.discard(fd)


def test_a_run_that_has_ended_holds_no_lock(tmp_path: Path) -> None:
    """Whoever started it may open it at once, although its sync tool ran in a thread that has just returned."""
    interval = sys.getswitchinterval()
    agent = clerk(runner.calls(("send", {})), "done").replace(approve="off")
    disk = Routed(crashtest.Process(crashtest.Machine()), tmp_path, Points())
    sys.setswitchinterval(5)  # a thread that waits for its turn waits for long
    try:
        for n in range(20):
            done = runner.start_sync(agent, "send", runs=RUNS, run=f"r{n}", workspace=tmp_path, disk=disk)
            assert isinstance(done, runner.Finished)
            eventlog.open(RUNS, f"r{n}", disk=disk).close()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("verb", ["open", "write_some", "sync", "rename"])
def test_every_write_of_the_workspace_goes_through_the_disk(tmp_path: Path, verb: str) -> None:
    """A fault there is a fault of the write: the old content stands, and nothing half-made is left."""
    (tmp_path / "sent.txt").write_text("old")
    faulty = crashtest.Faulty(eventlog.DISK, crashtest.Fault(verbs=(verb,), error=errno.ENOSPC))
    disk = Beside(crashtest.Process(crashtest.Machine()), faulty, tmp_path)
    agent = clerk(runner.calls(("send", {})), "done").replace(approve="off")
    asked = runner.start_sync(agent, "x", runs=RUNS, run="r", workspace=tmp_path, disk=disk)
    assert isinstance(asked, runner.Paused)  # the call may have written, as far as the runner can tell
    assert faulty.hit
    assert (tmp_path / "sent.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["sent.txt"]


def test_a_new_file_is_as_open_as_its_directory_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    """A project's files stay readable to whoever could read the project, and a private one stays private."""

    @runner.tool
    def write(call: runner.Call) -> str:
        """Write three files."""
        for path in ("new.txt", "deep/er/new.txt", "old.sh"):
            call.workspace.write_text(path, "x")
        return "written"

    for mode in (0o755, 0o700):
        place = tmp_path / f"{mode:o}"
        place.mkdir()
        place.chmod(mode)
        (place / "old.sh").touch()
        (place / "old.sh").chmod(0o751)
        agent = runner.Agent(model=runner.ScriptedModel([runner.calls(("write", {})), "done"]), tools=[write])
        runner.start_sync(agent, "x", runs=tmp_path / "runs", run=f"r{mode:o}", workspace=place)
        modes = {path.name: path.stat().st_mode & 0o777 for path in place.rglob("*")}
        assert modes == {"new.txt": mode & 0o666, "old.sh": 0o751, "deep": mode, "er": mode}


def test_a_dead_process_does_nothing_more(tmp_path: Path) -> None:
    """Past its point every verb raises, except a close; what it had open is closed."""
    machine = crashtest.Machine()
    points = Points(dies=2)
    routed = Routed(crashtest.Process(machine), tmp_path, points)
    disk = Counted(routed, points)
    fd = disk.open(tmp_path / "x", write=True, new=True)
    with pytest.raises(crashtest.Killed):
        disk.pwrite(fd, b"abcd", 0)
    assert points.passed == ["make x, before", "make x, after", "write x, inside"]
    assert (tmp_path / "x").read_bytes() == b"ab"
    with pytest.raises(crashtest.Killed):
        disk.stat(tmp_path / "x")
    with pytest.raises(crashtest.Killed):
        disk.pread(fd, 1, 0)
    disk.close(fd)
    routed.die()
    with pytest.raises(OSError, match="Bad file descriptor"):
        eventlog.DISK.pread(fd, 1, 0)


def test_an_hour_passes_at_once_and_in_order() -> None:
    """Sleeps, timeouts and the injected clock tell one time."""
    passed = Time()
    clock = VirtualClock(passed)
    said: list[str] = []

    async def after(seconds: float) -> None:
        await asyncio.sleep(seconds)
        said.append(f"{seconds:g}")

    async def body() -> None:
        began = clock.wall()
        async with asyncio.TaskGroup() as group:
            group.create_task(after(3600))
            group.create_task(after(20))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        await clock.sleep(40)
        assert (clock.wall() - began).total_seconds() == clock.monotonic() == 3700
        assert await asyncio.to_thread(threading.get_ident) == threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)

    began = time.monotonic()
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(passed)) as loop:
        loop.run(body())
    assert time.monotonic() - began < 20
    assert said == ["20", "3600"]


def test_a_life_that_waits_for_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated life that hangs would hang the sweep."""
    monkeypatch.setattr("runner.crashtest._virtual._PATIENCE", 0.01)
    with pytest.raises(Stuck, match="no timer"), asyncio.Runner(loop_factory=lambda: VirtualLoop(Time())) as loop:
        loop.run(asyncio.Event().wait())


def test_a_thread_acts_at_its_virtual_moment_or_when_its_life_is_over() -> None:
    """Whichever comes first; `end` returns when it has."""
    passed, acted = Time(), list[float]()
    passed.lingers = 0.02

    async def body(wait: float) -> None:
        threads = Threads(passed)

        def late() -> None:
            with threads.acting(90.0):
                acted.append(passed.now)

        thread = threading.Thread(target=late)
        thread.start()
        await asyncio.sleep(wait)
        threads.end()
        thread.join(20)

    for wait, due in ((200.0, 1), (0.0, 2)):
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(passed)) as loop:
            loop.run(body(wait))
        assert len(acted) == due


def test_where_a_death_may_lose_a_reply_or_leave_a_call_open() -> None:
    """By what the points are called; file operations lie between."""
    points = [
        "write a, before",
        "model turn 1, after",
        "write a, before",
        "tool t 1.0, before",
        "tool t 1.0, after",
        "x",
    ]
    assert [at for at in range(6) if may_lose_a_reply(points, at)] == [1, 2]
    assert [at for at in range(6) if may_leave_open(points, at)] == [2, 3, 4, 5]
    assert all(anywhere(points, at) for at in range(6))
