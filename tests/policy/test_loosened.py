"""A declaration that protects less than an earlier life's: for the rest of the run, the careful one counts."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

import runner
from replay.events import AttemptMarked, QuestionAsked
from replay.values import Definitions, Effect
from tests.support import tools
from tests.support.story import Story, questions

EFFECTS = get_args(Effect)
WEAKER = [(was, now) for now, was in itertools.combinations(EFFECTS, 2)]


def with_tool(effect: Effect, **options: object) -> runner.Agent:
    """An agent whose only tool is declared so."""
    return tools.agent(tools.make("act", effect, **options))  # type: ignore[arg-type] # the options of `make`


@pytest.mark.fault("an effect that became weaker between lives is believed")
@pytest.mark.parametrize(("was", "now"), WEAKER)
@pytest.mark.parametrize("dies", [True, False], ids=["died", "raised"])
def test_a_call_in_doubt_is_not_repeated_on_a_later_life_s_word(was: Effect, now: Effect, dies: bool) -> None:
    """It was begun in the life that declares less; the next one, or the same, asks a person."""
    story = Story(with_tool(was))
    story.die(agent=with_tool(now))
    story.reply(("act", '{"cause": "a"}'))
    if dies:
        story.die()
        events = story.go()
    else:
        events = story.ended("unknown")
    (asked,) = (event for event in events if isinstance(event, QuestionAsked))
    assert asked.why.endswith(f"an earlier life of this run declared the effect {was}")
    assert any(isinstance(event, AttemptMarked) for event in story.answer(asked.id, "rerun"))


@pytest.mark.parametrize(("now", "was"), WEAKER)
def test_a_stricter_effect_is_believed_at_once(now: Effect, was: Effect) -> None:
    """And the first one again is no weaker than itself."""
    story = Story(with_tool(was))
    story.die(agent=with_tool(now))
    assert story.state.loosened == {}
    story.die(agent=with_tool(was))
    story.die(agent=with_tool(now))
    assert story.state.loosened == {}


def test_a_yes_that_is_needed_again_is_the_tool_s_own() -> None:
    """The careful declaration came back: nothing is loosened any more."""
    story = Story(with_tool("non_idempotent", approval=True))
    story.die(agent=with_tool("non_idempotent"))
    assert story.state.loosened["act"].approval
    story.die(agent=with_tool("non_idempotent", approval=True))
    assert story.state.loosened == {}
    assert questions(story.reply(("act", '{"cause": "a"}'))) == ["1.0-approve"]


@pytest.mark.fault("once_per changed, and what happened is forgotten in silence")
def test_drift_says_what_a_changed_intent_means() -> None:
    """An audit and a preflight use these words."""
    was = Definitions(instructions="", parameters="", context="", tools={"act": tools.PAY.definition})
    other = tools.make("act", "keyed", lookup=True, visible_within=30, approval=True)
    now = Definitions(
        instructions="", parameters="", context="", tools={"act": other.definition, "more": other.definition}
    )
    assert was.drift(now) == [
        "tool act (once_per cause -> nothing, so what happened before is not recognised, approval predicate -> always)",
        "tool more (new)",
    ]
    assert now.drift(was)[1] == "tool more (gone)"
