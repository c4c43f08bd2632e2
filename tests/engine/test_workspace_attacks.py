"""A workspace beside somebody who can write in it: folders swapped for links, FIFOs, names of our own files."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import runner
import runner.testing
from eventlog import simdisk
from tests.engine.files import ACT, parked, tool
from tests.support import stage

ACTS: list[Callable[[runner.Workspace], object]] = [
    lambda files: files.write_text("sub/deep/x", "mine"),
    lambda files: files.write_text("sub/new", "mine"),
    lambda files: files.delete("sub/deep/x"),
    lambda files: files.read_text("sub/deep/x"),
]


def tree(place: Path) -> dict[str, tuple[int, str]]:
    """Every name below a directory, with its mode and content."""
    return {
        str(path.relative_to(place)): (path.lstat().st_mode, path.read_text() if path.is_file() else "")
        for path in place.rglob("*")
    }


@pytest.fixture
def outside(place: Path) -> Path:
    """What nobody may touch: a folder like `sub` of the workspace."""
    for path in (place / "sub/deep/x", place.parent / "outside/deep/x"):
        path.parent.mkdir(parents=True)
        path.write_text(path.parent.parent.name)
    (place.parent / "outside/deep/x").chmod(0o640)
    return place.parent / "outside"


class Swaps(simdisk.DiskProxy):
    """Before its operation numbered `at` on the workspace, `sub` becomes a link to `outside`."""

    def __init__(self, at: int, place: Path, outside: Path) -> None:
        """Count."""
        super().__init__(eventlog.DISK)
        self.left, self.place, self.outside = at, place, outside
        for verb in ("open", "open_dir", "rename", "unlink", "mkdir", "stat", "fchmod", "pread", "write_some", "close"):
            setattr(self, verb, self._counted(getattr(self, verb)))

    def _counted(self, act: Callable[..., object]) -> Callable[..., object]:
        def counted(target: int | Path, *given: object, **named: object) -> object:
            if not isinstance(target, Path) or target.is_relative_to(self.place):
                self.left -= 1
                if self.left == 0:
                    (self.place / "sub").rename(self.place / "aside")
                    (self.place / "sub").symlink_to(self.outside)
            return act(target, *given, **named)

        return counted


@pytest.mark.fault("folder swapped for a link")
@pytest.mark.parametrize("act", range(len(ACTS)))
def test_a_folder_swapped_for_a_link_at_any_step_lets_nothing_out(runs: Path, place: Path, act: int) -> None:
    """Whatever the step was, the files outside are neither written, nor read, nor given another mode."""
    at, done = 0, False
    while not done:
        at += 1
        each = place / str(at)
        inside, theirs = each / "in", each / "outside"
        for path in (inside / "sub/deep/x", theirs / "deep/x"):
            path.parent.mkdir(parents=True)
            path.write_text(path.parents[1].name)
        before, swaps, read = tree(theirs), Swaps(at, inside, theirs), list[object]()

        def body(files: runner.Workspace, read: list[object] = read) -> None:
            with contextlib.suppress(OSError, runner.errors.OutsideWorkspace):
                read.append(ACTS[act](files))

        agent, store = stage.agent(ACT, tool(body)), eventlog.Directory(runs, disk=swaps)
        stage.finished(runner.start_sync(agent, "x", runs=store, run=f"r{at}", workspace=inside))
        assert tree(theirs) == before
        assert "outside" not in read
        done = swaps.left > 0
    assert at > 10


SWAPS = """
import contextlib, itertools, os, sys
sub, outside, aside = sys.argv[1:]
os.mkdir(aside)
for n in itertools.count():
    for act, *names in (
        (os.rename, sub, f"{aside}/{n}"), (os.symlink, outside, sub), (os.unlink, sub), (os.rename, f"{aside}/{n}", sub)
    ):
        with contextlib.suppress(OSError):
            act(*names)
    for _ in range(n * 997 % 40000):
        pass
"""
"""A program that swaps a folder for a link and back until it is killed."""


@pytest.mark.full
@pytest.mark.fault("folder swapped for a link")
def test_a_process_that_swaps_a_folder_for_a_link_lets_nothing_out(runs: Path, place: Path, outside: Path) -> None:
    """In thousands of tries, some of which meet the folder and some the link."""
    before, refused, read = tree(outside), list[Exception](), set[object]()

    def body(files: runner.Workspace) -> str:
        swapper = subprocess.Popen([sys.executable, "-c", SWAPS, place / "sub", outside, place.parent / "aside"])
        try:
            while not (place.parent / "aside").exists():
                assert swapper.poll() is None
            for n in range(4000):
                try:
                    read.add(ACTS[n % len(ACTS)](files))
                except (OSError, runner.errors.OutsideWorkspace) as error:
                    refused.append(error)
        finally:
            swapper.kill()
            swapper.wait()
        return ""

    parked(runs, place, body)
    assert tree(outside) == before
    assert "outside" not in read
    assert 0 < len(refused) < 4000


@pytest.mark.fault("folder swapped for a link")
def test_a_workspace_that_is_a_link_by_now_is_not_written(runs: Path, place: Path, outside: Path) -> None:
    """It was a directory when the run began."""
    before = tree(outside)

    def body(files: runner.Workspace) -> str:
        place.rename(place.with_name("aside"))
        place.symlink_to(outside)
        with pytest.raises(OSError, match="directory"):
            files.write_text("deep/x", "mine")
        return ""

    parked(runs, place, body)
    assert tree(outside) == before


@pytest.mark.fault("FIFO in the workspace")
def test_a_fifo_in_the_workspace_hangs_no_tool(runs: Path, place: Path) -> None:
    """It has no content; a write puts a file in its place, a deletion removes it."""
    for name in ("read", "written", "deleted", "folder"):
        os.mkfifo(place / name)

    def body(files: runner.Workspace) -> str:
        for path in ("read", "folder/x"):
            with pytest.raises(OSError, match=r"regular file|directory"):
                files.read_text(path)
        files.write_text("written", "mine")
        files.delete("deleted")
        return files.read_text("written")

    parked(runs, place, body)
    assert stage.results(runs)["1.0"].text == "mine"
    assert sorted(path.name for path in place.iterdir()) == ["folder", "read", "written"]


@pytest.mark.fault("name of our own temporary file")
@pytest.mark.parametrize("path", [".refold-tmp-0123456789abcdef", ".refold-TMP-x", "a/.refold-tmp-1/b"])
def test_names_of_our_own_temporary_files_are_refused(runs: Path, place: Path, path: str) -> None:
    """A file of that name would be taken for a half-written one, and removed."""

    def body(files: runner.Workspace) -> str:
        for act in (lambda: files.write_text(path, "x"), lambda: files.read_text(path), lambda: files.delete(path)):
            with pytest.raises(runner.errors.OutsideWorkspace, match="half-written"):
                act()
        return "refused"

    parked(runs, place, body)
    assert stage.results(runs)["1.0"].text == "refused"
    assert list(place.iterdir()) == []


class Forgets(simdisk.DiskProxy):
    """A process that dies before it syncs the names in its workspace: none of those syncs happens."""

    place = Path()

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        """Leave the workspace's out."""
        return path.is_relative_to(self.place) or self.inner.sync_dir(path, fd=fd)


@pytest.mark.fault("power cut after a resume")
def test_directories_made_before_a_death_are_synced_by_the_next_life(place: Path) -> None:
    """A person saw the file there and said that the call was done; no power cut from then on takes the file away."""
    machine, runs = simdisk.Machine(), Path("/runs")
    process = simdisk.Process(machine)
    for path in (*reversed(place.parents[:-1]), place):
        process.mkdir(path)
        process.sync_dir(path.parent)
    hasty = Forgets(simdisk.Process(machine, 2))
    hasty.place = place

    @runner.tool
    def act(call: runner.Call) -> str:
        call.workspace.write_text("new/deep/a.txt", "mine")
        message = "killed before the syncs"
        raise runner.OutcomeUnknown(message)

    agent, store = stage.agent(ACT, act), eventlog.Directory(runs, disk=hasty)
    (question,) = stage.asked(runner.start_sync(agent, "x", runs=store, run="r", workspace=place))
    store = eventlog.Directory(runs, disk=process)
    runner.settle("r", question.id, "ada", "done", "it is there", runs=store)
    assert stage.finished(runner.resume_sync("r", agent, runs=store)) == "over"
    file = f"{place}/new/deep/a.txt"
    for cut in simdisk.cuts(machine.trace, first=len(machine.trace)):
        assert cut.image.paths().get(file) == b"mine"
    assert list(place.iterdir()) == []


@pytest.mark.fault("power cut after a resume")
def test_a_deletion_of_what_is_gone_makes_that_durable(place: Path) -> None:
    """A life before may have removed it and died before the sync."""
    machine = simdisk.Machine()
    process = simdisk.Process(machine)
    for path in (*reversed(place.parents[:-1]), place):
        process.mkdir(path)
    process.close(process.open(place / "a.txt", write=True, new=True))
    process.sync_dir(place)
    process.unlink(place / "a.txt")
    body = tool(lambda files: files.delete("a.txt"))
    store = eventlog.Directory("/runs", disk=process)
    assert stage.finished(runner.start_sync(stage.agent(ACT, body), "x", runs=store, workspace=place)) == "over"
    for cut in simdisk.cuts(machine.trace, first=len(machine.trace)):
        assert f"{place}/a.txt" not in cut.image.paths()
