"""A world appears complete, belongs to one task, and lets one process in."""

import os
import pickle
import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

import runner
from runner import triage
from runner.triage import _files, _tracker_process
from tests.support import stage
from tests.support.forkserver import ForkServer
from tests.triage.worlds import BATCH, TASK


def hold(path: str, ready: str) -> None:
    """Hold the world, and say so by a file, until somebody kills this process."""
    with triage.World(Path(path)).held():
        Path(ready).touch()
        signal.pause()


@pytest.fixture
def world(tmp_path: Path) -> triage.World:
    """A world that is not laid yet."""
    return triage.World(tmp_path / "world")


@pytest.fixture
def task() -> triage.Task:
    """The task of the demo."""
    return triage.Task(TASK)


def test_the_workspace_is_the_tasks_own(world: triage.World, task: triage.Task) -> None:
    """Every file of it and no other, and the directory is private: it holds what the agent reads."""
    with world.held():
        world.lay(task)
    there = {p.relative_to(world.workspace).as_posix() for p in world.workspace.rglob("*") if p.is_file()}
    assert {"README.md", "pytest.ini", "todo/store.py", "tests/test_store.py"} <= there
    assert not any("__pycache__" in path for path in there)
    assert world.path.stat().st_mode & 0o777 == 0o700
    assert world.is_new(task)


def test_it_is_laid_once_and_one_that_was_worked_in_is_refused(world: triage.World, task: triage.Task) -> None:
    """A second life must find what the first one did, not a fresh copy; and a new run must not begin in it."""
    with world.held():
        world.lay(task)
        world.lay(task)
        (world.workspace / "todo" / "store.py").write_text("patched")
        with pytest.raises(triage.WrongWorld, match="another run has worked in it"):
            world.lay(task)
    assert (world.workspace / "todo" / "store.py").read_text() == "patched"
    assert not world.is_new(task)


def test_a_death_while_it_is_laid_leaves_no_half_workspace(
    world: triage.World, task: triage.Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a project under the right name would be taken for a whole one; and the rest is cleared away."""
    write, left = Path.write_bytes, 0

    def die(place: Path, data: bytes) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return write(place, data)

    monkeypatch.setattr(Path, "write_bytes", die)
    for left in range(5, 11, 2):  # noqa: B007 (the writes count it down)
        with pytest.raises(KeyboardInterrupt), world.held():
            world.lay(task)
        assert not world.workspace.exists()
        assert list(world.path.glob(".tmp-*"))
    monkeypatch.undo()
    with world.held():
        world.lay(task)
    assert world.workspace.exists()
    assert world.is_new(task)
    assert not list(world.path.glob(".tmp-*"))


def test_what_another_process_is_just_writing_is_left_alone(world: triage.World, task: triage.Task) -> None:
    """A tracker that starts, or a command that sets a fault, works beside whoever lays the world out."""
    with world.held():
        (world.path / ".tmp-tracker.address-0000").write_text("half")
        world.lay(task)
    assert (world.path / ".tmp-tracker.address-0000").read_text() == "half"


def test_another_process_is_told_who_holds_it(world: triage.World, forks: ForkServer, tmp_path: Path) -> None:
    """At once, and with the number of the process to look for; its death frees the world."""
    holder = forks.begin(hold, path=world.path, ready=tmp_path / "ready")
    stage.within(90, (tmp_path / "ready").exists)
    with pytest.raises(triage.WorldHeld, match=f"held by process {holder.pid}"), world.held():
        pass
    os.kill(holder.pid, signal.SIGKILL)
    assert holder.end().killed
    with world.held():
        pass


def test_the_same_process_is_refused_too(world: triage.World) -> None:
    """Two jobs in one process are two writers like any others."""
    with world.held(), pytest.raises(triage.WorldHeld) as caught, world.held():
        pass
    assert caught.value.pid == os.getpid()


def test_a_world_of_another_task_is_refused(world: triage.World, task: triage.Task) -> None:
    """Its workspace is another project's: nothing there is touched."""
    with world.held():
        world.lay(triage.Task(BATCH))
        with pytest.raises(triage.WrongWorld, match="none of this task's"):
            world.lay(task)
    assert world.is_new(triage.Task(BATCH))


def test_a_folder_that_is_nobodys_world_is_refused(world: triage.World, task: triage.Task) -> None:
    """A user's own project that happens to be called workspace must not be worked on."""
    world.workspace.mkdir(parents=True)
    with world.held(), pytest.raises(triage.WrongWorld, match="none of this task's"):
        world.lay(task)


def make_file(path: Path) -> None:
    """A file where the world should be."""
    path.write_text("")


def make_link(path: Path) -> None:
    """A lock that is a link to somebody's file."""
    path.mkdir()
    (path / "lock").symlink_to(path.parent / "victim")


def make_fifo(path: Path) -> None:
    """A lock that would hang whoever opens it."""
    path.mkdir()
    os.mkfifo(path / "lock")


@pytest.mark.parametrize("make", [make_file, make_link, make_fifo])
def test_a_place_that_can_be_no_world_gets_a_sentence(world: triage.World, make: Callable[[Path], None]) -> None:
    """A link is not followed, a FIFO does not hang, and nothing behind either is touched."""
    make(world.path)
    with pytest.raises(triage.WrongWorld, match="can't be the world"), world.held():
        pass
    assert not (world.path.parent / "victim").exists()


def test_a_used_world_is_set_aside_with_its_files_and_leaves_its_faults(world: triage.World, task: triage.Task) -> None:
    """The earlier run's work can still be looked at; the tracker's faults were set for this place."""
    triage.set_tracker_faults(world.path, triage.TrackerFaults(delay=2))
    for number in (1, 2):
        with world.held():
            world.lay(task)
        world.renew(task)  # nobody has worked in it
        (world.workspace / "README.md").write_text(f"worked in {number}")
        world.renew(task)
    read = [(world.path.with_name(f"world.{number}") / "workspace" / "README.md").read_text() for number in (1, 2)]
    assert read == ["worked in 1", "worked in 2"]
    assert not world.workspace.exists()
    assert triage.tracker_faults(world.path) == triage.TrackerFaults(delay=2)


def test_a_lock_whose_file_was_moved_away_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our open and our lock the holder may set the world aside: then the lock protects another place."""
    file = tmp_path / "lock"
    monkeypatch.setattr(_files.Held, "still", lambda _: False)
    assert _files.take(file) is None


def test_a_lock_knows_that_its_file_is_gone(tmp_path: Path) -> None:
    """Whoever holds a deleted file holds nothing."""
    held = _files.take(tmp_path / "lock")
    assert held is not None
    assert held.still()
    (tmp_path / "lock").unlink()
    assert not held.still()
    held.close()


def test_a_holder_without_a_readable_name_is_said_to_have_none(world: triage.World) -> None:
    """The name is a courtesy: a file that holds something else must not become an error of its own."""
    with world.held():
        (world.path / "lock").write_bytes(b"\xff not a number")
        with pytest.raises(triage.WorldHeld, match="left no name"), world.held():
            pass


def test_a_replacement_that_fails_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old or new, never neither, and no temporary file beside it."""
    file = tmp_path / "tracker.json"
    _files.replace(file, b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        _files.replace(file, b"new")
    assert [place.name for place in tmp_path.iterdir()] == ["tracker.json"]
    assert file.read_bytes() == b"old"


@pytest.mark.fault("a link, a pipe or another file's name in a world")
@pytest.mark.parametrize("name", ["tracker.log", "tracker.json", "tracker.lock"])
@pytest.mark.parametrize("make", ["link", "hard link", "pipe"])
def test_a_world_s_files_are_reached_through_no_link_and_no_pipe(world: triage.World, name: str, make: str) -> None:
    """The victim stays as it was, and nothing waits for a pipe that nobody reads."""
    victim = world.path.parent / "victim"
    victim.write_text("{}")
    world.path.mkdir()
    file = world.path / name
    make_it: dict[str, Callable[[], None]] = {
        "link": lambda: file.symlink_to(victim),
        "hard link": lambda: file.hardlink_to(victim),
        "pipe": lambda: os.mkfifo(file),
    }
    make_it[make]()
    if name == "tracker.json":
        with pytest.raises(triage.WrongWorld) if make != "hard link" else nullcontext():
            triage.tracker_faults(world.path)
    elif name == "tracker.log":
        with pytest.raises(triage.WrongWorld):
            _tracker_process._start(world.path)  # noqa: SLF001 (what `url` does in a thread)
    else:
        with pytest.raises(OSError, match="not a regular file"):
            _files.take(file)
    assert victim.read_text() == "{}"


@pytest.mark.parametrize(
    "error",
    [
        triage.NoSuchTask("x", ("a", "b")),
        triage.NoSuchTool("x", ("a", "b")),
        triage.WorldHeld("w", 7),
        triage.WrongWorld("w", "why"),
        triage.TrackerDown("w"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_a_pickle_and_say_what_to_do(error: runner.RunError) -> None:
    """They cross process borders, and each ends in something a person can do."""
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert (type(back), str(back), back.hint) == (type(error), str(error), error.hint)
    assert error.hint
