"""A fork goes on in the same workspace, which must hold what it held at the line."""

import hashlib
from pathlib import Path

import pytest

import runner
import runner.testing
from replay.events import FileIntended, FileWritten
from tests.runs import scenes


@runner.tool(effect="idempotent")
def write(path: str, text: str, call: runner.Call) -> str:
    """Write a file."""
    call.workspace.write_text(path, text)
    return "written"


@runner.tool(effect="non_idempotent")
def torn(call: runner.Call) -> str:
    """Write a file, and end without an answer."""
    call.workspace.write_text("a.txt", "torn")
    message = "gone"
    raise runner.OutcomeUnknown(message)


def agent(*script: object) -> runner.Agent:
    """An agent that writes files."""
    return runner.Agent(name="agent", model=runner.testing.ScriptedModel(script), tools=[write, torn])  # type: ignore[arg-type] # a script


def start(runs: Path, place: Path) -> tuple[int, int]:
    """Two files are written one after another, `a.txt` twice; the lines after the first and the second."""
    script = [
        runner.testing.tool_calls(("write", {"path": "a.txt", "text": "one"})),
        runner.testing.tool_calls(("write", {"path": "b.txt", "text": "two"})),
        runner.testing.tool_calls(("write", {"path": "a.txt", "text": "three"})),
        "over",
    ]
    runner.start_sync(agent(*script), "write", runs=runs, run="p", workspace=place)
    return scenes.seq_of(runs, "p", FileWritten), scenes.seq_of(runs, "p", FileWritten, 1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty workspace."""
    path = tmp_path / "place"
    path.mkdir()
    return path


def test_files_that_were_written_after_the_line_must_be_brought_back_first(runs: Path, place: Path) -> None:
    """Also a file that the run wrote only later: its first write logged what it found, here nothing."""
    first, _ = start(runs, place)
    with pytest.raises(runner.errors.NotForkable) as refused:
        runner.fork("p", at=first, runs=runs, new="f")
    assert "a.txt (changed)" in str(refused.value)
    assert "b.txt (changed)" in str(refused.value)
    assert not (runs / "f").exists()
    (place / "a.txt").write_text("one")
    with pytest.raises(runner.errors.NotForkable, match=r"bring back: b.txt"):
        runner.fork("p", at=first, runs=runs, new="f")
    (place / "b.txt").unlink()
    assert runner.fork("p", at=first, runs=runs, new="f").files.keys() == {"a.txt"}
    done = runner.resume_sync("f", agent("", "over"), runs=runs)
    assert isinstance(done, runner.Finished)


def test_the_last_line_needs_nothing_brought_back(runs: Path, place: Path) -> None:
    """The workspace holds what it held there."""
    start(runs, place)
    last = scenes.lines(runs, "p")[-1].seq
    assert runner.fork("p", at=last, runs=runs, new="f").phase == "model"


def test_at_the_line_of_a_coming_write_the_old_content_and_the_new_are_both_right(runs: Path, place: Path) -> None:
    """The call was in flight there, so it is open in the fork, and either content is explained."""
    start(runs, place)
    at = scenes.seq_of(runs, "p", FileIntended, 2)
    state = runner.fork("p", at=at, runs=runs, new="f")
    assert state.in_doubt == ("3.0",)
    assert len(state.files["a.txt"]) == 2
    runner.stop("f", "ann", runs=runs)
    (place / "a.txt").write_text("one")
    runner.fork("p", at=at, runs=runs, new="g")
    done = runner.resume_sync("g", agent("", "", "", "over"), runs=runs)
    assert isinstance(done, runner.Finished)
    assert (place / "a.txt").read_text() == "three"


def test_a_look_at_a_fork_leaves_what_a_tool_is_just_writing(runs: Path, place: Path) -> None:
    """A process may hold the run then; the fork itself removes what no process writes any more."""
    start(runs, place)
    last = scenes.lines(runs, "p")[-1].seq
    half = place / f".refold-tmp-{hashlib.sha256(b'a.txt').hexdigest()[:16]}"
    half.write_text("half")
    runner.fork("p", at=last, runs=runs, dry=True)
    assert half.exists()
    runner.fork("p", at=last, runs=runs, new="f")
    assert not half.exists()


def test_a_workspace_that_is_gone_is_refused(runs: Path, place: Path) -> None:
    """Nothing says what it held."""
    first, _ = start(runs, place)
    place.rename(place.with_name("elsewhere"))
    with pytest.raises(runner.errors.NoWorkspace):
        runner.fork("p", at=first, runs=runs, new="f")
