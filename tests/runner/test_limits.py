"""Limits cover the whole life of a run, however many processes it takes (spec rows 3 and 4; hazards 30, 31, 36)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import replay
import runner
from runner import Limits
from tests.runner import stage
from tests.runner.stagehand import Stagehand

DOLLAR = 1.0


@runner.tool(effect="reads")
def look() -> str:
    """Look."""
    return "x"


@runner.tool(approval=True)
def ask() -> str:
    """Ask first."""
    return "done"


LOOKS = [runner.calls(("look", {}), dollars=DOLLAR)] * 40
ASKS = [runner.calls(("ask", {}))] * 40


def test_turns_are_counted_across_lives(runs: Path) -> None:
    """Each life raises the limit by two, and gets two turns."""
    with pytest.raises(runner.TurnLimit):
        stage.start(LOOKS, look, runs=runs, limits=Limits(turns=2))
    for turns in (4, 6):
        with pytest.raises(runner.TurnLimit):
            runner.resume_sync("r", stage.agent(LOOKS, look, limits=Limits(turns=turns)), runs=runs)
        assert runner.read("r", runs).turns == turns
    assert [changed.limits.turns for changed in stage.events(runs, replay.LimitsChanged)] == [4, 6]


@pytest.mark.parametrize(
    ("limits", "error", "turns"),
    [
        (Limits(turns=3), runner.TurnLimit, 3),
        (Limits(tokens=241), runner.TokenLimit, 3),
        (Limits(tokens=240), runner.TokenLimit, 2),
        (Limits(dollars=2.5), runner.DollarLimit, 3),
        (Limits(dollars=2.0), runner.DollarLimit, 2),
        (Limits(dollars=0.0), runner.DollarLimit, 0),
    ],
)
def test_an_ask_is_sent_only_while_spend_is_below_the_limit(
    runs: Path, limits: Limits, error: type[runner.RunStopped], turns: int
) -> None:
    """So it overshoots by one ask at most; a reply costs a dollar and 120 tokens."""
    with pytest.raises(error):
        stage.start(LOOKS, look, runs=runs, limits=limits)
    assert runner.read("r", runs).turns == turns


def test_a_resume_under_the_limit_that_stopped_it_writes_nothing(runs: Path) -> None:
    """Row 4: looking does not wear a run out, however often."""
    with pytest.raises(runner.TurnLimit):
        stage.start(LOOKS, look, runs=runs, limits=Limits(turns=2))
    before = stage.written(runs)
    for _ in range(12):
        with pytest.raises(runner.TurnLimit):
            runner.resume_sync("r", stage.agent(LOOKS, look, limits=Limits(turns=2)), runs=runs)
    assert stage.written(runs) == before


def test_a_limit_in_dollars_needs_a_price(runs: Path) -> None:
    """An ask that nobody can price would count as free for ever: refused before anything is made, sent or written."""
    agent = runner.Agent(model=stage.scripted("over", most=runner.Bound()))
    with pytest.raises(runner.BadAgent, match="price"):
        runner.start_sync(agent.replace(limits=Limits(dollars=1)), stage.TASK, runs=runs, run="r")
    assert not runs.exists()
    with pytest.raises(runner.TurnLimit):
        runner.start_sync(agent.replace(limits=Limits(turns=0)), stage.TASK, runs=runs, run="r")
    before = stage.written(runs)
    with pytest.raises(runner.BadAgent, match="price"):
        runner.resume_sync("r", agent.replace(limits=Limits(dollars=1)), runs=runs)
    assert stage.written(runs) == before
    assert stage.finished(runner.resume_sync("r", agent, runs=runs)) == "over"


def test_a_raised_limit_goes_on_to_the_end(runs: Path) -> None:
    """Today's limits win."""
    script = [*LOOKS[:3], "over"]
    with pytest.raises(runner.DollarLimit):
        stage.start(script, look, runs=runs, limits=Limits(dollars=2))
    assert stage.finished(runner.resume_sync("r", stage.agent(script, look), runs=runs)) == "over"


def test_dying_for_nine_lives_stops_at_the_same_dollar_as_never_dying(stagehand: Stagehand, runs: Path) -> None:
    """Hazard 31: a reply lost in a death has cost its bound, which here is what a reply costs."""
    limits = {"dollars": 7.0, "resumes": 100}
    assert stagehand.play("spends", runs=runs / "one", limits=limits, dies=False).value == "DollarLimit"
    for _ in range(7):
        stagehand.play("spends", runs=runs / "nine", limits=limits, dies=True).killed()
    for _ in range(2):
        assert stagehand.play("spends", runs=runs / "nine", limits=limits, dies=True).value == "DollarLimit"
    one, nine = (runner.read("r", runs / name).spent for name in ("one", "nine"))
    assert (one.total_dollars, one.dollars, one.lost_dollars) == (7.0, 7.0, 0.0)
    assert (nine.total_dollars, nine.dollars, nine.lost_dollars, nine.lost_asks) == (7.0, 0.0, 7.0, 7)


def test_a_run_that_dies_in_every_life_stops_with_too_many_resumes(stagehand: Stagehand, runs: Path) -> None:
    """Hazard 30: ten resumes by default; the eleventh stops, says so once, and is listed with its reason."""
    for _ in range(11):
        stagehand.play("dies_in_its_tool", runs=runs).killed()
    assert runner.read("r", runs).resumes == 10
    assert stagehand.play("dies_in_its_tool", runs=runs).value == "TooManyResumes"
    before = stage.written(runs)
    for _ in range(2):
        assert stagehand.play("dies_in_its_tool", runs=runs).value == "TooManyResumes"
    assert stage.written(runs) == before
    (entry,) = runner.unfinished(runs)
    assert entry.state is not None
    assert entry.state.stopped is not None
    assert entry.state.stopped.reason == "TooManyResumes"


def test_raising_the_limit_of_resumes_goes_on(stagehand: Stagehand, runs: Path) -> None:
    """Hazard 30: and a call that died eleven times is still tried again, because deaths are bounded by this alone."""
    for _ in range(11):
        stagehand.play("dies_in_its_tool", runs=runs).killed()
    assert stagehand.play("dies_in_its_tool", runs=runs).value == "TooManyResumes"
    assert stagehand.play("dies_in_its_tool", runs=runs, resumes=30, dies=False).value == "over"
    assert stage.events(runs, replay.AttemptMarked)[-1].n == 12


def test_a_run_that_parks_thirty_times_is_not_worn_out(runs: Path) -> None:
    """Hazard 36: the first resume after a person's answer uses the answer up, and is not counted."""
    agent = stage.agent([*ASKS[:30], "over"], ask)
    outcome: Any = runner.start_sync(agent, stage.TASK, runs=runs, run="r")
    for _ in range(30):
        (question,) = stage.asked(outcome)
        runner.approve("r", question.id, "olga", runs=runs)
        outcome = runner.resume_sync("r", agent, runs=runs)
    assert stage.finished(outcome) == "over"
    assert runner.read("r", runs).resumes == 0


def test_only_the_first_resume_after_an_answer_is_free(stagehand: Stagehand, runs: Path) -> None:
    """Otherwise a run that dies after every resume would never reach its limit."""
    stagehand.play("dies_after_a_yes", runs=runs, approve=False)
    (question,) = runner.read("r", runs).waiting
    runner.approve("r", question.id, "olga", runs=runs)
    for resumes in (0, 1, 2):
        stagehand.play("dies_after_a_yes", runs=runs, approve=True).killed()
        assert runner.read("r", runs).resumes == resumes


def test_looking_at_a_paused_run_writes_nothing(runs: Path) -> None:
    """Row 4."""
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
