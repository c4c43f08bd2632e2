"""The workspace: every content of every file is explained, and a foreign one stops the run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import runner
from replay.events import FileIntended, FileWritten, WorkspaceAccepted, WorkspaceMoved
from replay.messages import UserMessage
from replay.values import FileHash
from tests.engine.files import ACT, LIMIT, go_on, parked, sha, tool, two
from tests.support import stage


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
    intended = stage.events(runs, FileIntended)
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
    """The model would go on from a file that is no longer there."""
    parked(runs, place, two)
    change(place)
    with pytest.raises(runner.errors.WorkspaceChanged, match=r"a\.txt") as stopped:
        go_on(runs)
    assert "b.txt" not in stopped.value.detail
    state = runner.read_state("r", runs)
    assert (state.turns, state.stopped and state.stopped.reason) == (1, "WorkspaceChanged")


def test_a_restored_file_lets_the_run_go_on(runs: Path, place: Path) -> None:
    """A stop is a reason beside the phase, and this one has gone."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    edited(place)
    with pytest.raises(runner.errors.WorkspaceChanged):
        go_on(runs)
    (place / "a.txt").write_text("mine")
    assert stage.finished(go_on(runs)) == "over"


def test_a_deletion_is_a_content_too(runs: Path, place: Path) -> None:
    """What the run removed must stay removed."""
    (place / "a.txt").write_text("old")

    def body(files: runner.Workspace) -> None:
        files.delete("a.txt")
        files.delete("never.txt")
        assert not files.exists("a.txt")

    parked(runs, place, body)
    assert [(e.path, e.sha256) for e in stage.events(runs, FileWritten)] == [
        ("a.txt", None),
        ("never.txt", None),
    ]
    (place / "a.txt").write_text("back")
    with pytest.raises(runner.errors.WorkspaceChanged):
        go_on(runs)


def test_a_workspace_that_is_gone_stops_the_run(runs: Path, place: Path) -> None:
    """There is nothing to check against."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    place.rename(place.with_name("elsewhere"))
    with pytest.raises(runner.errors.WorkspaceChanged, match="place"):
        go_on(runs)


@pytest.mark.fault("a workspace that was moved")
def test_a_workspace_that_was_moved_is_used_where_it_is_now(runs: Path, place: Path) -> None:
    """Its files are as the run left them, so nobody needs to vouch; the log says where they are from here on."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    elsewhere = place.rename(place.with_name("elsewhere"))
    agent = stage.agent([ACT[0], ACT[0], "over"], tool(lambda files: files.read_text("a.txt")))
    assert stage.finished(runner.resume_sync("r", agent, runs=runs, workspace=elsewhere)) == "over"
    (moved,) = stage.events(runs, WorkspaceMoved)
    assert moved.path == str(elsewhere.resolve())
    assert runner.read_state("r", runs).workspace == moved.path
    assert stage.results(runs)["2.0"].text == "mine"
    assert [each.kind for each in runner.review.audit("r", runs).story.findings].count("workspace-moved") == 1


@pytest.mark.fault("a workspace that was moved")
def test_a_directory_that_is_not_the_workspace_is_not_taken_for_it(runs: Path, place: Path) -> None:
    """Files that differ there stop the run, unless somebody vouches for them; the log's place stays until then."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    other = place.with_name("other")
    other.mkdir()
    (other / "a.txt").write_text("theirs")
    with pytest.raises(runner.errors.WorkspaceChanged, match=r"a\.txt"):
        go_on(runs, workspace=other)
    assert stage.events(runs, WorkspaceMoved) == []
    with pytest.raises(runner.errors.NoWorkspace):
        go_on(runs, workspace=place.with_name("nowhere"))
    assert stage.finished(go_on(runs, workspace=other, accept_workspace="olga")) == "over"
    assert [event.by for event in stage.events(runs, WorkspaceMoved)] == ["olga"]
    assert stage.finished(go_on(runs, workspace=place)) == "over"  # it is done: no workspace is looked at


def test_a_run_without_a_workspace_gets_none_later(runs: Path, place: Path) -> None:
    """Its tools never had one."""

    @runner.tool(name="act", effect="reads")
    def plain() -> str:
        return ""

    with pytest.raises(runner.errors.TurnLimit):
        stage.start(ACT, plain, runs=runs, limits=LIMIT)
    with pytest.raises(runner.errors.NoWorkspace):
        go_on(runs, workspace=place)


def test_accepting_logs_who_and_which_and_tells_the_model(runs: Path, place: Path) -> None:
    """The name may be hostile, the log holds it all the same."""
    parked(runs, place, two)
    edited(place)
    seen: list[runner.Request] = []

    def answer(request: runner.Request) -> runner.Reply:
        seen.append(request)
        return runner.Reply(text="read again")

    agent = stage.agent([ACT[0], answer], tool(lambda _: ""))
    assert stage.finished(runner.resume_sync("r", agent, runs=runs, accept_workspace="olga\ud800")) == "read again"
    (accepted,) = stage.events(runs, WorkspaceAccepted)
    assert accepted.by == "olga\ufffd"
    assert accepted.files == (FileHash(path="a.txt", sha256=sha("theirs")),)
    note = seen[0].messages[-1]
    assert isinstance(note, UserMessage)
    assert "a.txt" in note.text
    assert "olga" in note.text


def test_accepting_a_workspace_that_holds_no_change_logs_nothing(runs: Path, place: Path) -> None:
    """There was nothing to accept."""
    parked(runs, place, lambda files: files.write_text("a.txt", "mine"))
    assert stage.finished(go_on(runs, accept_workspace="olga")) == "over"
    assert stage.events(runs, WorkspaceAccepted) == []
