"""What the sweep is built on: the runner's disk, the crash points of one process, virtual time."""

import asyncio
import contextlib
import errno
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

import eventlog
import runner
import runner.testing
from eventlog import simdisk
from runner.testing._crash_point_disk import CrashPointDisk, RoutedDisk
from runner.testing._points import CrashPoints, may_leave_in_doubt, may_lose_a_reply
from runner.testing._virtual import Stuck, Threads, VirtualClock, VirtualLoop, VirtualTime
from tests.support.faulty_disk import VERBS, Fault, FaultyDisk

RUNS = Path("/runs")


@runner.tool(approval=True)
def send(call: runner.Call) -> str:
    """Send something."""
    call.workspace.write_text("sent.txt", call.key)
    return "sent"


def clerk(*script: runner.Reply | str) -> runner.Agent:
    """An agent that sends."""
    return runner.Agent(name="agent", model=runner.testing.ScriptedModel(script), tools=[send])


def test_a_run_works_on_whatever_disk_it_is_given(tmp_path: Path) -> None:
    """Started, read, answered, refused, resumed, stopped: no file of the log outside of the simulated machine."""
    machine = simdisk.Machine()
    agent = clerk(runner.testing.tool_calls(("send", {}), ("send", {})), "done")
    workspace = tmp_path / "place"
    workspace.mkdir()
    disk = RoutedDisk(simdisk.Process(machine), workspace, CrashPoints())
    asked = runner.start_sync(agent, "send", runs=eventlog.Directory(RUNS, disk=disk), run="r", workspace=workspace)
    assert isinstance(asked, runner.Paused)
    runner.approve("r", "1.0-approve", "ada", runs=eventlog.Directory(RUNS, disk=disk))
    runner.refuse("r", "1.1-approve", "ada", "once is enough", runs=eventlog.Directory(RUNS, disk=disk))
    done = runner.resume_sync("r", agent, runs=eventlog.Directory(RUNS, disk=disk))
    assert isinstance(done, runner.Finished)
    state = runner.read_state("r", eventlog.Directory(RUNS, disk=disk))
    assert state.phase == "done"
    assert [path.name for path in workspace.iterdir()] == ["sent.txt"]
    other = runner.start_sync(agent, "send", runs=eventlog.Directory(RUNS, disk=disk), run="s", workspace=workspace)
    assert isinstance(other, runner.Paused)
    assert runner.stop("s", "ada", runs=eventlog.Directory(RUNS, disk=disk)).state.stopped is not None
    with pytest.raises(runner.errors.AlreadyAnswered):
        runner.settle("r", "1.0-approve", "ada", "rerun", runs=eventlog.Directory(RUNS, disk=disk))
    started = eventlog.Directory(RUNS, disk=disk).read("r").lines[1].events[0]
    assert b'"host":"simulated"' in bytes(started)
    assert not RUNS.exists()


class Beside(simdisk.DiskProxy):
    """A simulated process whose files under `folder` are on another disk."""

    def __init__(self, process: simdisk.Process, other: eventlog.Disk, folder: Path) -> None:
        """Stand before both."""
        super().__init__(process)
        self.other, self.folder = other, folder
        self.theirs: set[int] = set()


def beside(verb: str) -> Any:
    """A verb of whichever disk a path or an open file is on."""

    def routed(self: Beside, file: int | Path | str, *given: Any, **named: Any) -> Any:
        is_theirs = file in self.theirs if isinstance(file, int) else Path(file).is_relative_to(self.folder)
        found = getattr(self.other if is_theirs else self.inner, verb)(file, *given, **named)
        if is_theirs and verb in ("open", "open_dir"):
            self.theirs.add(found)
        if verb == "close":
            self.theirs.discard(cast("int", file))
        return found

    return routed


for _verb in {*VERBS, "open_dir", "fchmod"} - {"look"}:
    setattr(Beside, _verb, beside(_verb))


def test_a_run_that_has_ended_holds_no_lock(tmp_path: Path) -> None:
    """Whoever started it may open it at once, although its sync tool ran in a thread that has just returned."""
    interval = sys.getswitchinterval()
    agent = clerk(runner.testing.tool_calls(("send", {})), "done").replace(approve="off")
    disk = RoutedDisk(simdisk.Process(simdisk.Machine()), tmp_path, CrashPoints())
    sys.setswitchinterval(5)  # a thread that waits for its turn waits for long
    try:
        for n in range(20):
            done = runner.start_sync(
                agent, "send", runs=eventlog.Directory(RUNS, disk=disk), run=f"r{n}", workspace=tmp_path
            )
            assert isinstance(done, runner.Finished)
            eventlog.Directory(RUNS, disk=disk).open(f"r{n}").close()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("verb", ["open", "write_some", "sync", "rename"])
def test_every_write_of_the_workspace_goes_through_the_disk(tmp_path: Path, verb: str) -> None:
    """A fault there is a fault of the write: the old content stands, and nothing half-made is left."""
    (tmp_path / "sent.txt").write_text("old")
    faulty = FaultyDisk(eventlog.DISK, Fault(verbs=(verb,), error=errno.ENOSPC))
    disk = Beside(simdisk.Process(simdisk.Machine()), faulty, tmp_path)
    agent = clerk(runner.testing.tool_calls(("send", {})), "done").replace(approve="off")
    asked = runner.start_sync(agent, "x", runs=eventlog.Directory(RUNS, disk=disk), run="r", workspace=tmp_path)
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
        agent = runner.Agent(
            name="agent",
            model=runner.testing.ScriptedModel([runner.testing.tool_calls(("write", {})), "done"]),
            tools=[write],
        )
        runner.start_sync(agent, "x", runs=tmp_path / "runs", run=f"r{mode:o}", workspace=place)
        modes = {path.name: path.stat().st_mode & 0o777 for path in place.rglob("*")}
        assert modes == {"new.txt": mode & 0o666, "old.sh": 0o751, "deep": mode, "er": mode}


@pytest.mark.fault("dead process acts")
def test_a_dead_process_does_nothing_more(tmp_path: Path) -> None:
    """Past its point every verb raises, except a close; what it had open is closed."""
    machine = simdisk.Machine()
    points = CrashPoints(dies=2)
    routed = RoutedDisk(simdisk.Process(machine), tmp_path, points)
    disk = CrashPointDisk(routed, points)
    fd = disk.open(tmp_path / "x", write=True, new=True)
    with pytest.raises(simdisk.Killed):
        disk.pwrite(fd, b"abcd", 0)
    assert points.passed == ["make x, before", "make x, after", "write x, inside"]
    assert (tmp_path / "x").read_bytes() == b"ab"
    with pytest.raises(simdisk.Killed):
        disk.stat(tmp_path / "x")
    with pytest.raises(simdisk.Killed):
        disk.pread(fd, 1, 0)
    disk.close(fd)
    routed.die()
    with pytest.raises(OSError, match="Bad file descriptor"):
        eventlog.DISK.pread(fd, 1, 0)


def test_an_hour_passes_at_once_and_in_order() -> None:
    """Sleeps, timeouts and the injected clock tell one time."""
    passed = VirtualTime()
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


@pytest.mark.parametrize("processes", [1, 2])
def test_looks_that_find_nothing_are_passed_over_where_nothing_can_have_come(processes: int) -> None:
    """A timer that only sets itself again waits for whatever else is due, unless another process lives."""
    passed, looks, seen = VirtualTime(), list[float](), list[float]()
    if processes > 1:
        passed.beside(lambda: passed.wait(10_000))

    async def body() -> None:
        loop, mail = asyncio.get_running_loop(), list[float]()

        def look() -> None:
            looks.append(passed.now)
            seen.extend(mail)
            mail.clear()
            if passed.now < 200:
                loop.call_later(0.25, look)

        look()
        await asyncio.sleep(100)
        mail.append(passed.now)
        await asyncio.sleep(1)
        assert seen == [100]
        await asyncio.sleep(199)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(passed)) as running:
        running.run(body())
    assert all(at % 0.25 == 0 for at in looks)
    assert len(looks) < 30 if processes == 1 else len(looks) == 801


def test_a_process_that_waits_for_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated life that hangs would hang the sweep."""
    monkeypatch.setattr("runner.testing._virtual._PATIENCE", 0.01)
    with (
        pytest.raises(Stuck, match="no timer"),
        asyncio.Runner(loop_factory=lambda: VirtualLoop(VirtualTime())) as loop,
    ):
        loop.run(asyncio.Event().wait())


def test_a_thread_acts_at_its_virtual_moment_or_when_its_process_ends() -> None:
    """Whichever comes first; `end` returns when it has."""
    passed, acted = VirtualTime(), list[float]()
    passed.lingers = 0.02

    async def body(wait: float) -> None:
        threads, loop = Threads(passed), asyncio.get_running_loop()

        def late() -> None:
            threads.act_after(90.0)
            acted.append(passed.now)
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(acted.count, 0)  # as the runner's threads tell that they have ended

        thread = threading.Thread(target=late)
        thread.start()
        await asyncio.sleep(wait)
        threads.end()
        thread.join(90)

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
    assert [at for at in range(6) if may_leave_in_doubt(points, at)] == [2, 3, 4, 5]
