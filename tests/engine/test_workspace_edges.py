"""Where a workspace ends: paths that leave it, tools that may not write, threads that outlive their call."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import runner
from replay.events import FileIntended
from tests.engine.files import ACT, go_on, parked, sha, tool
from tests.support import stage


@pytest.mark.parametrize(
    "path",
    ["../out", "/etc/passwd", "a/../../out", "a//b", "./a", "", "a\0b", "a\\b", "link/x", "link", "dead", "s\ud800"],
)
def test_a_path_that_leaves_the_workspace_is_refused(runs: Path, place: Path, path: str) -> None:
    """Escapes, links, NUL, and names that no file system of ours can hold: for writing, reading and looking."""
    outside = place.parent / "out"
    outside.mkdir()
    (outside / "x").write_text("theirs")
    (place / "link").symlink_to(outside)
    (place / "dead").symlink_to(place.parent / "made")
    refused: list[str] = []

    def body(files: runner.Workspace) -> None:
        for act in (
            lambda: files.write_text(path, "mine"),
            lambda: files.delete(path),
            lambda: files.read_text(path),
            lambda: files.exists(path),
        ):
            try:
                act()
            except runner.errors.OutsideWorkspace as error:
                refused.append(error.hint)

    parked(runs, place, body)
    assert len(refused) == 4
    assert sorted(p.name for p in place.parent.rglob("*") if "runs" not in p.parts) == [
        "dead", "link", "out", "place", "x"
    ]  # fmt: skip
    assert (outside / "x").read_text() == "theirs"
    assert stage.events(runs, FileIntended) == []


def test_a_link_with_the_name_of_our_temporary_file_is_not_followed(runs: Path, place: Path) -> None:
    """Its name can be computed, so somebody may have put a link there."""
    name = ".refold-tmp-" + sha("a.txt")[:16]
    (place / name).symlink_to(place.parent / "made")
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    assert not (place.parent / "made").exists()
    assert [path.name for path in place.iterdir()] == ["a.txt"]


def test_a_write_that_the_disk_refuses_leaves_nothing_behind(runs: Path, place: Path) -> None:
    """The old content stands, no half-made file does, and a resume finds all of it explained."""
    (place / "taken").mkdir()
    (place / "file").write_text("x")

    def body(files: runner.Workspace) -> str:
        for path in ("taken", "file/below", "n" * 300):
            with pytest.raises(OSError, match=r"\["):
                files.write_text(path, "mine")
        return "refused"

    parked(runs, place, body)
    assert sorted(path.name for path in place.rglob("*")) == ["file", "taken"]
    assert stage.finished(go_on(runs)) == "over"


def test_a_reads_tool_cannot_write(runs: Path, place: Path) -> None:
    """Its calls run side by side and again at will, because they change nothing."""
    body = tool(lambda files: files.write_text("a.txt", "mine"), "reads")
    assert stage.finished(stage.start(ACT, body, runs=runs, workspace=place)) == "over"
    assert stage.results(runs)["1.0"].how == "failed"
    assert "ReadOnlyWorkspace" in stage.results(runs)["1.0"].text
    assert list(place.iterdir()) == []


def test_a_lookup_reads_and_cannot_write(runs: Path, place: Path) -> None:
    """A look at the files changes none."""
    said: list[str] = []

    @runner.tool
    def act(call: runner.Call) -> str:
        call.workspace.write_text("a.txt", "mine")
        raise runner.OutcomeUnknown("lost")

    @act.lookup
    def find(call: runner.Call) -> runner.Found:
        with pytest.raises(runner.errors.ReadOnlyWorkspace) as refused:
            call.workspace.write_text("a.txt", "again")
        said.append(str(refused.value))
        return runner.Found(call.workspace.read_text("a.txt"))

    assert stage.finished(stage.start(ACT, act, runs=runs, workspace=place)) == "over"
    assert stage.results(runs)["1.0"].text == "mine"
    assert len(said) == 1


def test_a_thread_that_outlives_its_call_cannot_write(runs: Path, place: Path) -> None:
    """A write after the call's result would be explained by nobody, and the log could not be read again."""
    go, problems = threading.Event(), list[str]()
    late: list[threading.Thread] = []

    def behind(files: runner.Workspace) -> None:
        go.wait(20)
        try:
            files.write_text("late.txt", "mine")
        except runner.errors.ReadOnlyWorkspace as error:
            problems.append(str(error))

    def body(files: runner.Workspace) -> str:
        late.append(threading.Thread(target=behind, args=(files,)))
        late[0].start()
        return "begun"

    def second(_request: runner.Request) -> runner.Reply:
        go.set()
        late[0].join()
        return runner.Reply(text="over")

    assert stage.finished(stage.start([ACT[0], second], tool(body), runs=runs, workspace=place)) == "over"
    assert runner.read_state("r", runs).phase == "done"
    assert len(problems) == 1
    assert list(place.iterdir()) == []


def test_threads_of_one_call_may_write_side_by_side(runs: Path, place: Path) -> None:
    """Lines and files are put in order; the last content is the explained one."""

    def body(files: runner.Workspace) -> str:
        threads = [threading.Thread(target=files.write_text, args=("a.txt", "x" * n)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "written"

    parked(runs, place, body)
    assert len(stage.events(runs, FileIntended)) == 12
    assert stage.finished(go_on(runs)) == "over"
