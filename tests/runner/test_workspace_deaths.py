"""A write that a death interrupted leaves the old content or the new one, and both are explained (spec row 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

import replay
import runner
from tests.runner import stage
from tests.runner.stagehand import Stagehand

POINTS = ["intended", "half", "renamed"]
CONTENTS = {"intended": "old", "half": "old", "renamed": "new"}


def dead(stagehand: Stagehand, runs: Path, place: Path, at: str, effect: str = "idempotent") -> None:
    """A run whose process died while its tool wrote `a.txt` anew."""
    (place / "a.txt").write_text("old")
    stagehand.play("dies_writing", runs=runs, place=place, at=at, effect=effect).killed()


def again(runs: Path, effect: str = "idempotent") -> object:
    """Resume it."""
    return runner.resume_sync("r", runner.Agent(model=stage.scripted(*SCRIPT), tools=[writer(effect)]), runs=runs)


SCRIPT = [runner.calls(("act", {})), "over"]


def writer(effect: str) -> runner.Tool:
    """The tool that wrote."""

    def act(call: runner.Call) -> str:
        call.workspace.write_text("a.txt", "new")
        return "written"

    return runner.tool(effect="once")(act) if effect == "once" else runner.tool(effect="idempotent")(act)


@pytest.mark.parametrize("at", POINTS)
def test_an_interrupted_write_is_explained_and_written_again(
    stagehand: Stagehand, runs: Path, place: Path, at: str
) -> None:
    """An idempotent call simply runs again, in a workspace without leftovers."""
    dead(stagehand, runs, place, at)
    assert (place / "a.txt").read_text() == CONTENTS[at]
    assert stage.finished(again(runs)) == "over"
    assert [path.name for path in place.iterdir()] == ["a.txt"]
    assert (place / "a.txt").read_text() == "new"
    (held,) = runner.read("r", runs).hashes()
    assert held.sha256 == stage.events(runs, replay.FileWritten)[-1].sha256


@pytest.mark.parametrize("at", POINTS)
def test_an_interrupted_write_of_a_once_tool_is_a_question_and_no_foreign_edit(
    stagehand: Stagehand, runs: Path, place: Path, at: str
) -> None:
    """Whichever content is there, nobody else put it there; and what the write left half-made is removed."""
    dead(stagehand, runs, place, at, "once")
    (question,) = stage.asked(again(runs, "once"))
    assert question.kind == "settle"
    assert [path.name for path in place.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("at", POINTS)
def test_a_third_content_after_an_interrupted_write_is_a_foreign_edit(
    stagehand: Stagehand, runs: Path, place: Path, at: str
) -> None:
    """Neither the old nor the new one."""
    dead(stagehand, runs, place, at)
    (place / "a.txt").write_text("theirs")
    with pytest.raises(runner.WorkspaceChanged):
        again(runs)


def test_a_file_that_an_interrupted_write_would_have_made_may_be_missing(
    stagehand: Stagehand, runs: Path, place: Path
) -> None:
    """Absence is a content too, and it was the old one."""
    stagehand.play("dies_writing", runs=runs, place=place, at="half", effect="idempotent").killed()
    assert [path.name for path in place.iterdir()] != []
    assert stage.finished(again(runs)) == "over"
    assert [path.name for path in place.iterdir()] == ["a.txt"]


def test_an_interrupted_write_of_the_same_content_leaves_nothing_behind(
    stagehand: Stagehand, runs: Path, place: Path
) -> None:
    """Old and new are one content here, and the half-made file must go all the same."""
    (place / "a.txt").write_text("new")
    stagehand.play("dies_writing", runs=runs, place=place, at="half", effect="once").killed()
    stage.asked(again(runs, "once"))
    assert [path.name for path in place.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("at", ["intended", "removed"])
def test_an_interrupted_deletion_is_explained(stagehand: Stagehand, runs: Path, place: Path, at: str) -> None:
    """There or gone, both were intended."""
    (place / "a.txt").write_text("old")
    stagehand.play("dies_deleting", runs=runs, place=place, at=at).killed()
    assert (place / "a.txt").exists() == (at == "intended")
    (question,) = stage.asked(again(runs, "once"))
    assert question.kind == "settle"
