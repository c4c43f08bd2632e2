"""The workspace: every content of every file is explained, and nothing outside is touched (spec row 5)."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import replay
import runner
from tests.runner import stage

ACT = [runner.calls(("act", {})), "over"]
LIMIT = runner.Limits(turns=1)


def sha(text: str) -> str:
    """A content's hash as the log has it."""
    return hashlib.sha256(text.encode()).hexdigest()


def tool(body: Callable[[runner.Workspace], object], effect: str = "idempotent") -> runner.Tool:
    """A tool named `act` that does something in the workspace."""

    @runner.tool(effect=effect)  # type: ignore[call-overload,untyped-decorator,unused-ignore] # the effect varies
    def act(call: runner.Call) -> str:
        return str(body(call.workspace))

    assert isinstance(act, runner.Tool)
    return act


def parked(runs: Path, place: Path, body: Callable[[runner.Workspace], object]) -> None:
    """A run that did something in its workspace and stopped before its second turn."""
    with pytest.raises(runner.TurnLimit):
        stage.start(ACT, tool(body), runs=runs, workspace=place, limits=LIMIT)


def go_on(runs: Path, **options: object) -> object:
    """Resume it under a higher limit."""
    return runner.resume_sync("r", stage.agent(ACT, tool(lambda _: "")), runs=runs, **options)


def test_a_write_is_logged_before_and_after(runs: Path, place: Path) -> None:
    """The coming hash, the old one, the line of its own before the file changes, and the write with the result."""
    (place / "old.txt").write_text("old")

    def body(files: runner.Workspace) -> str:
        files.write_text("old.txt", "new")
        files.write_bytes("deep/er/b.bin", b"\0\xff")
        return files.read_text("old.txt")

    parked(runs, place, body)
    assert (place / "old.txt").read_text() == "new"
    assert (place / "deep/er/b.bin").read_bytes() == b"\0\xff"
    intended = stage.events(runs, replay.FileIntended)
    assert [(e.path, e.sha256, e.before) for e in intended] == [
        ("old.txt", sha("new"), sha("old")),
        ("deep/er/b.bin", hashlib.sha256(b"\0\xff").hexdigest(), None),
    ]
    assert [[type(event).__name__ for event in line] for line in stage.lines(runs)][3:6] == [
        ["FileIntended"],
        ["FileIntended"],
        ["FileWritten", "FileWritten", "ResultRecorded", "RunStopped"],
    ]
    assert stage.results(runs)["1.0"].text == "new"
    assert sorted(path.name for path in place.rglob("*")) == ["b.bin", "deep", "er", "old.txt"]


def test_a_file_keeps_its_mode(runs: Path, place: Path) -> None:
    """A script stays a script."""
    (place / "run.sh").write_text("old")
    (place / "run.sh").chmod(0o751)
    parked(runs, place, lambda files: files.write_text("run.sh", "new"))
    assert (place / "run.sh").stat().st_mode & 0o777 == 0o751


def test_a_workspace_that_holds_what_was_written_is_accepted_silently(runs: Path, place: Path) -> None:
    """And so are files that the run never wrote, whatever happens to them."""
    (place / "theirs.txt").write_text("x")
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    (place / "theirs.txt").write_text("y")
    (place / "more.txt").write_text("z")
    assert stage.finished(go_on(runs)) == "over"


def edited(place: Path) -> None:
    """Another content."""
    (place / "a.txt").write_text("theirs")


def removed(place: Path) -> None:
    """No content."""
    (place / "a.txt").unlink()


def made_a_directory(place: Path) -> None:
    """A directory of the name."""
    (place / "a.txt").unlink()
    (place / "a.txt").mkdir()


def made_a_fifo(place: Path) -> None:
    """Something that never answers a reader."""
    (place / "a.txt").unlink()
    os.mkfifo(place / "a.txt")


def made_a_loop(place: Path) -> None:
    """A link to itself."""
    (place / "a.txt").unlink()
    (place / "a.txt").symlink_to("a.txt")


@pytest.mark.parametrize("change", [edited, removed, made_a_directory, made_a_fifo, made_a_loop])
def test_a_foreign_edit_stops_the_run_and_names_the_file(
    runs: Path, place: Path, change: Callable[[Path], None]
) -> None:
    """Row 5: the model would go on from a file that is no longer there."""
    parked(runs, place, lambda files: (files.write_text("a.txt", "mine"), files.write_text("b.txt", "mine")))
    change(place)
    with pytest.raises(runner.WorkspaceChanged, match=r"a\.txt") as stopped:
        go_on(runs)
    assert "b.txt" not in stopped.value.detail
    state = runner.read("r", runs)
    assert (state.turns, state.stopped and state.stopped.reason) == (1, "WorkspaceChanged")


def test_a_restored_file_lets_the_run_go_on(runs: Path, place: Path) -> None:
    """A stop is a reason beside the phase, and this one has gone."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    edited(place)
    with pytest.raises(runner.WorkspaceChanged):
        go_on(runs)
    (place / "a.txt").write_text("mine")
    assert stage.finished(go_on(runs)) == "over"


def test_a_deletion_is_a_content_too(runs: Path, place: Path) -> None:
    """What the run removed must stay removed."""
    (place / "a.txt").write_text("old")
    parked(runs, place, lambda files: (files.delete("a.txt"), files.delete("never.txt"), files.exists("a.txt")))
    assert not (place / "a.txt").exists()
    assert [(e.path, e.sha256) for e in stage.events(runs, replay.FileWritten)] == [("a.txt", None), ("never.txt", None)]
    (place / "a.txt").write_text("back")
    with pytest.raises(runner.WorkspaceChanged):
        go_on(runs)


def test_a_workspace_that_is_gone_stops_the_run(runs: Path, place: Path) -> None:
    """There is nothing to check against."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    place.rename(place.with_name("elsewhere"))
    with pytest.raises(runner.WorkspaceChanged, match="place"):
        go_on(runs)


def test_accepting_logs_who_and_which_and_tells_the_model(runs: Path, place: Path) -> None:
    """Row 5; the name may be hostile, the log holds it all the same."""
    parked(runs, place, lambda files: (files.write_text("a.txt", "mine"), files.write_text("b.txt", "mine")))
    edited(place)
    seen: list[runner.Request] = []

    def answer(request: runner.Request) -> runner.Reply:
        seen.append(request)
        return runner.Reply(text="read again")

    agent = stage.agent([ACT[0], answer], tool(lambda _: ""))
    assert stage.finished(runner.resume_sync("r", agent, runs=runs, accept_workspace="olga\ud800")) == "read again"
    (accepted,) = stage.events(runs, replay.WorkspaceAccepted)
    assert accepted.by == "olga\ufffd"
    assert accepted.files == (replay.FileHash(path="a.txt", sha256=sha("theirs")),)
    note = seen[0].messages[-1]
    assert isinstance(note, replay.Said)
    assert "a.txt" in note.text
    assert "olga" in note.text


def test_accepting_a_workspace_that_holds_no_change_logs_nothing(runs: Path, place: Path) -> None:
    """There was nothing to accept."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    assert stage.finished(go_on(runs, accept_workspace="olga")) == "over"
    assert stage.events(runs, replay.WorkspaceAccepted) == []


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
            except runner.OutsideWorkspace as error:
                refused.append(error.hint)

    parked(runs, place, body)
    assert len(refused) == 4
    assert sorted(p.name for p in place.parent.rglob("*") if "runs" not in p.parts) == [
        "dead", "link", "out", "place", "x"
    ]  # fmt: skip
    assert (outside / "x").read_text() == "theirs"
    assert stage.events(runs, replay.FileIntended) == []


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
            with pytest.raises(OSError, match="."):
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
    """A question to the world leaves it as it is."""
    said: list[str] = []

    @runner.tool
    def act(call: runner.Call) -> str:
        call.workspace.write_text("a.txt", "mine")
        raise runner.Unknown("lost")

    @act.lookup
    def find(call: runner.Call) -> runner.Found:
        with pytest.raises(runner.ReadOnlyWorkspace) as refused:
            call.workspace.write_text("a.txt", "again")
        said.append(str(refused.value))
        return runner.Found(call.workspace.read_text("a.txt"))

    assert stage.finished(stage.start(ACT, act, runs=runs, workspace=place)) == "over"
    assert stage.results(runs)["1.0"].text == "mine"
    assert len(said) == 1


def test_a_thread_that_outlives_its_call_cannot_write(runs: Path, place: Path) -> None:
    """A write behind the call's result would be explained by nobody, and the log could not be read again."""
    go, problems = threading.Event(), list[str]()
    late: list[threading.Thread] = []

    def behind(files: runner.Workspace) -> None:
        go.wait(20)
        try:
            files.write_text("late.txt", "mine")
        except runner.ReadOnlyWorkspace as error:
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
    assert runner.read("r", runs).phase == "done"
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
    assert len(stage.events(runs, replay.FileIntended)) == 12
    assert stage.finished(go_on(runs)) == "over"
