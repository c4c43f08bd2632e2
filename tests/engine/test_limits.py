"""Limits cover the whole life of a run, however many processes it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.events import AttemptMarked, LimitsChanged
from runner import Limits
from tests.engine import scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer

DOLLAR = 1.0


@runner.tool(effect="reads")
def look() -> str:
    """Look."""
    return "x"


@runner.tool(approval=True)
def ask() -> str:
    """Ask first."""
    return "done"


LOOKS = [runner.testing.tool_calls(("look", {}), dollars=DOLLAR)] * 40
ASKS = [runner.testing.tool_calls(("ask", {}))] * 40


def test_turns_are_counted_across_lives(runs: Path) -> None:
    """Each life raises the limit by two, and gets two turns."""
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(LOOKS, look, runs=runs, limits=Limits(turns=2))
    for turns in (4, 6):
        with pytest.raises(runner.errors.TurnLimit):
            runner.resume_sync("r", stage.agent(LOOKS, look, limits=Limits(turns=turns)), runs=runs)
        assert runner.read_state("r", runs).turns == turns
    assert [changed.limits.turns for changed in stage.events(runs, LimitsChanged)] == [4, 6]


def test_a_resume_under_the_limit_that_stopped_it_writes_nothing(runs: Path) -> None:
    """Looking does not wear a run out, however often."""
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(LOOKS, look, runs=runs, limits=Limits(turns=2))
    before = stage.written(runs)
    for _ in range(12):
        with pytest.raises(runner.errors.TurnLimit):
            runner.resume_sync("r", stage.agent(LOOKS, look, limits=Limits(turns=2)), runs=runs)
    assert stage.written(runs) == before


def test_a_raised_limit_goes_on_to_the_end(runs: Path) -> None:
    """The current limits win."""
    script = [*LOOKS[:3], "over"]
    with pytest.raises(runner.errors.DollarLimit):
        stage.start(script, look, runs=runs, limits=Limits(dollars=2))
    assert stage.finished(runner.resume_sync("r", stage.agent(script, look), runs=runs)) == "over"


@pytest.mark.fault("spend over many lives")
def test_dying_for_nine_lives_stops_at_the_same_dollar_as_never_dying(forks: ForkServer, runs: Path) -> None:
    """A reply lost in a death has cost its bound, which here is what a reply costs."""
    limits = {"dollars": 7.0, "resumes": 100}
    assert forks.run(scenes_deaths.spends, runs=runs / "one", limits=limits, dies=False).value == "DollarLimit"
    for _ in range(7):
        assert forks.run(scenes_deaths.spends, runs=runs / "nine", limits=limits, dies=True).killed
    for _ in range(2):
        assert forks.run(scenes_deaths.spends, runs=runs / "nine", limits=limits, dies=True).value == "DollarLimit"
    one, nine = (runner.read_state("r", runs / name).spent for name in ("one", "nine"))
    assert (one.total_dollars, one.dollars, one.lost_dollars) == (7.0, 7.0, 0.0)
    assert (nine.total_dollars, nine.dollars, nine.lost_dollars, nine.lost_asks) == (7.0, 0.0, 7.0, 7)


@pytest.mark.fault("death at one point again and again")
def test_a_run_that_dies_in_every_life_stops_with_too_many_resumes(forks: ForkServer, runs: Path) -> None:
    """Ten by default, after the first resume, whose life before had a reply; the next one stops, and says so once."""
    for _ in range(12):
        assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs).killed
    assert runner.read_state("r", runs).resumes == 10
    assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs).value == "TooManyResumes"
    before = stage.written(runs)
    for _ in range(2):
        assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs).value == "TooManyResumes"
    assert stage.written(runs) == before
    (entry,) = runner.list_unfinished(runs)
    assert entry.status is not None
    assert entry.status.stopped == "TooManyResumes"


@pytest.mark.fault("death at one point again and again")
def test_raising_the_limit_of_resumes_goes_on(forks: ForkServer, runs: Path) -> None:
    """And a call that died twelve times is still tried again, because deaths are bounded by this alone."""
    for _ in range(12):
        assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs).killed
    assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs).value == "TooManyResumes"
    assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs, resumes=30, dies=False).value == "over"
    assert stage.events(runs, AttemptMarked)[-1].n == 13


@pytest.mark.fault("many pauses")
def test_a_run_that_parks_thirty_times_is_not_worn_out(runs: Path) -> None:
    """The first resume after a person's answer uses the answer up, and is not counted."""
    agent = stage.agent([*ASKS[:30], "over"], ask)
    outcome: Any = runner.start_sync(agent, stage.TASK, runs=runs, run="r")
    for _ in range(30):
        (question,) = stage.asked(outcome)
        runner.approve("r", question.id, "olga", runs=runs)
        outcome = runner.resume_sync("r", agent, runs=runs)
    assert stage.finished(outcome) == "over"
    assert runner.read_state("r", runs).resumes == 0


@pytest.mark.fault("many pauses")
def test_only_the_first_resume_after_an_answer_is_free(forks: ForkServer, runs: Path) -> None:
    """Otherwise a run that dies after every resume would never reach its limit."""
    forks.run(scenes_deaths.dies_after_a_yes, runs=runs, approve=False)
    (question,) = runner.read_state("r", runs).waiting
    runner.approve("r", question.id, "olga", runs=runs)
    for resumes in (0, 1, 2):
        assert forks.run(scenes_deaths.dies_after_a_yes, runs=runs, approve=True).killed
        assert runner.read_state("r", runs).resumes == resumes


def test_looking_at_a_paused_run_writes_nothing(runs: Path) -> None:
    """However often somebody looks, the limit on resumes is not used up."""
    agent = stage.agent([*ASKS[:1], "over"], ask)
    (question,) = stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    before = stage.written(runs)
    for _ in range(12):
        assert stage.asked(runner.resume_sync("r", agent, runs=runs)) == (question,)
    assert stage.written(runs) == before


def test_looking_at_a_paused_run_with_somebody_who_does_not_answer_writes_nothing(runs: Path) -> None:
    """A prompt that was closed without an answer is a look too, and each question is put once."""
    put: list[str] = []

    def hook(question: runner.Question) -> None:
        put.append(question.id)

    agent = stage.agent([*ASKS[:1], "over"], ask)
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    before = stage.written(runs)
    for _ in range(12):
        stage.asked(runner.resume_sync("r", agent, runs=runs, on_question=hook))
    assert stage.written(runs) == before
    assert put == ["1.0-approve"] * 12
