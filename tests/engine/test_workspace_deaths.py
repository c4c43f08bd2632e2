"""A write that a death interrupted leaves the old content or the new one, and both are explained."""

from __future__ import annotations

from pathlib import Path

import pytest

import runner
import runner.testing
from replay.events import FileWritten
from tests.engine import scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer

POINTS = ["intended", "half", "renamed"]
CONTENTS = {"intended": "old", "half": "old", "renamed": "new"}


def dead(forks: ForkServer, runs: Path, place: Path, at: str, effect: str = "idempotent") -> None:
    """A run whose process died while its tool wrote `a.txt` anew."""
    (place / "a.txt").write_text("old")
    assert forks.run(scenes_deaths.dies_writing, runs=runs, place=place, at=at, effect=effect).killed


def again(runs: Path, effect: str = "idempotent") -> object:
    """Resume it."""
    return runner.resume_sync(
        "r", runner.Agent(name="agent", model=stage.scripted(*SCRIPT), tools=[writer(effect)]), runs=runs
    )


SCRIPT = [runner.testing.tool_calls(("act", {})), "over"]


def writer(effect: str) -> runner.Tool:
    """The tool that wrote."""

    def act(call: runner.Call) -> str:
        call.workspace.write_text("a.txt", "new")
        return "written"

    return (
        runner.tool(effect="non_idempotent")(act)
        if effect == "non_idempotent"
        else runner.tool(effect="idempotent")(act)
    )


@pytest.mark.parametrize("at", POINTS)
def test_an_interrupted_write_is_explained_and_written_again(
    forks: ForkServer, runs: Path, place: Path, at: str
) -> None:
    """An idempotent call simply runs again, in a workspace without leftovers."""
    dead(forks, runs, place, at)
    assert (place / "a.txt").read_text() == CONTENTS[at]
    assert stage.finished(again(runs)) == "over"
    assert [path.name for path in place.iterdir()] == ["a.txt"]
    assert (place / "a.txt").read_text() == "new"
    (held,) = runner.read_state("r", runs).hashes()
    assert held.sha256 == stage.events(runs, FileWritten)[-1].sha256


@pytest.mark.parametrize("at", POINTS)
def test_an_interrupted_write_of_a_once_tool_is_a_question_and_no_foreign_edit(
    forks: ForkServer, runs: Path, place: Path, at: str
) -> None:
    """Whichever content is there, nobody else put it there; and what the write left half-made is removed."""
    dead(forks, runs, place, at, "non_idempotent")
    (question,) = stage.asked(again(runs, "non_idempotent"))
    assert question.kind == "settle"
    assert [path.name for path in place.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("at", POINTS)
def test_a_third_content_after_an_interrupted_write_is_a_foreign_edit(
    forks: ForkServer, runs: Path, place: Path, at: str
) -> None:
    """Neither the old nor the new one."""
    dead(forks, runs, place, at)
    (place / "a.txt").write_text("theirs")
    with pytest.raises(runner.errors.WorkspaceChanged):
        again(runs)


def test_a_file_that_an_interrupted_write_would_have_made_may_be_missing(
    forks: ForkServer, runs: Path, place: Path
) -> None:
    """Absence is a content too, and it was the old one."""
    assert forks.run(scenes_deaths.dies_writing, runs=runs, place=place, at="half", effect="idempotent").killed
    assert [path.name for path in place.iterdir()] != []
    assert stage.finished(again(runs)) == "over"
    assert [path.name for path in place.iterdir()] == ["a.txt"]


def test_an_interrupted_write_of_the_same_content_leaves_nothing_behind(
    forks: ForkServer, runs: Path, place: Path
) -> None:
    """Old and new are one content here, and the half-made file must go all the same."""
    (place / "a.txt").write_text("new")
    assert forks.run(scenes_deaths.dies_writing, runs=runs, place=place, at="half", effect="non_idempotent").killed
    stage.asked(again(runs, "non_idempotent"))
    assert [path.name for path in place.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("at", ["intended", "removed"])
def test_an_interrupted_deletion_is_explained(forks: ForkServer, runs: Path, place: Path, at: str) -> None:
    """There or gone, both were intended."""
    (place / "a.txt").write_text("old")
    assert forks.run(scenes_deaths.dies_deleting, runs=runs, place=place, at=at).killed
    assert (place / "a.txt").exists() == (at == "intended")
    (question,) = stage.asked(again(runs, "non_idempotent"))
    assert question.kind == "settle"
