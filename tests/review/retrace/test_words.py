"""The words of a decision: other ones are drift, where they are the decider's own."""

from datetime import datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

import eventlog
import replay
import runner
import runner.testing
from replay import Event, State
from replay._event import EVENTS
from replay.events import ChildStarted, ResultRecorded
from tests.review.retrace import agents
from tests.support import tools
from tests.support.story import Story

pytestmark = [pytest.mark.fault("a sentence frozen by an old history")]

WORDED = [kind for kind in EVENTS.values() if kind.words and kind is not ChildStarted]
"""What may drift of a child's start are its limits, which are no words: `tests/children` has that."""


@pytest.mark.parametrize("kind", WORDED, ids=lambda kind: kind.__name__)
def test_the_same_decision_in_other_words_is_drift(kind: type[Event], runs: Path) -> None:
    """A sentence must not be frozen for ever because some history holds it; what a person wrote is not our sentence."""
    agent = agents.paying.replace(
        model=runner.testing.ScriptedModel(
            ["", runner.testing.tool_calls(("nothing", {}), ("pay", {"cents": 5, "token": "t"}))]
        ),
        limits=runner.Limits(turns=2),
    )
    runner.start_sync(agent, "pay", runs=runs, run="r")
    (question,) = runner.read_state("r", runs).waiting
    runner.approve("r", question.id, runs=runs, who="ada")
    with pytest.raises(runner.errors.TurnLimit):
        runner.resume_sync("r", agent, runs=runs)

    def otherwise(state: State, now: datetime) -> list[Event]:
        decided = runner.decide(agent, state, now)
        return [replace(e, **{str(kind.words): "Other words."}) if type(e) is kind else e for e in decided]

    told = replay.retrace(eventlog.store(runs).read("r").lines, otherwise)
    assert told.divergence is None
    assert [(drift.part, drift.now) for drift in told.drift] == [(kind.words, "Other words.")]


def test_what_a_person_found_is_never_other_words() -> None:
    """It is what the call came to, so another text is another result."""
    story = Story(tools.agent())
    story.reply(("send", '{"cause": "a"}'))
    story.answer("1.0-approve", "approve")
    story.die()
    story.go()
    story.answer("1.0-settle-1", "done", "paid twice")

    def otherwise(state: State, now: datetime) -> list[Event]:
        decided = runner.decide(story.agent, state, now)
        return [replace(e, text="paid once") if isinstance(e, ResultRecorded) else e for e in decided]

    told = replay.retrace(story.lines, otherwise)
    assert told.divergence is not None
    assert told.divergence.why == "the result of a call differs in text"
