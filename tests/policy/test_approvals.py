"""Approvals by examples: when a yes is asked for, by whom it may be given, and what a no becomes."""

from __future__ import annotations

from typing import Literal

import pytest

import replay
import runner
from replay import Event
from replay.events import (
    AttemptMarked,
    LookupAnswered,
    ModelAsked,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    ResultRecorded,
    RunResumed,
)
from replay.messages import Reply, ToolCall, ToolResults
from tests.support import tools
from tests.support.story import Story, only, questions

A, B, C = (f'{{"cause": "{cause}"}}' for cause in "abc")


def marked(intents: list[Event]) -> list[str]:
    """The calls that are about to run."""
    return [e.call for e in intents if isinstance(e, AttemptMarked)]


def test_the_approvals_of_a_whole_reply_are_asked_before_its_first_call_and_the_run_pauses() -> None:
    """A person sees all of it at once, and nothing has happened yet."""
    story = Story(tools.agent())
    intents = story.reply(("put", A), ("send", A), ("pay", B), ("send", B))
    assert questions(intents) == ["1.1-approve", "1.2-approve", "1.3-approve"]
    assert isinstance(intents[-1], PhaseChanged)
    assert marked(intents) == []


def test_a_question_shows_the_bound_arguments_and_carries_their_digest() -> None:
    """What a person says yes to is what the tool gets, byte for byte, however the model spelled it."""
    story = Story(tools.agent())
    raw = '{ "cause" : "é" }'
    story.reply(("send", raw))
    (question,) = story.state.waiting
    bound = '{"cause": "é"}'
    assert (question.arguments, question.tool, question.kind) == (bound, "send", "approve")
    assert question.digest == replay.digest(bound.encode())


def test_a_yes_that_only_the_current_code_wants_is_asked_for_before_its_call_runs() -> None:
    """The reply began under code that wanted none; the call has not run, so there is still time to ask."""
    story = Story(tools.agent(tools.make("first", "reads"), tools.make("last", "non_idempotent")))
    story.reply(("first", A), ("last", A), ("last", B))
    story.die(agent=tools.agent(tools.make("first", "reads"), tools.make("last", "non_idempotent", approval=True)))
    story.go()
    assert questions(story.ran(call="1.0")) == ["1.1-approve"]
    assert marked(story.answer("1.1-approve", "approve")) == ["1.1"]
    assert questions(story.ran(call="1.1")) == ["1.2-approve"]


def test_a_predicate_that_raises_means_ask() -> None:
    """Whoever wrote it did not think of these arguments: a person should."""
    story = Story(tools.agent())
    assert marked(story.reply(("pay", A))) == ["1.0"]
    story.ran()
    assert questions(story.reply(("pay", C))) == ["2.0-approve"]


def test_none_is_asked_for_a_call_that_is_invalid_or_whose_intent_happened() -> None:
    """A person would answer for nothing: the call does not run either way."""
    pay = tools.make("pay", "non_idempotent", approval=True, once_per=("cause",))
    story = Story(tools.agent(pay, tools.SEND))
    story.reply(("pay", A))
    story.answer("1.0-approve", "approve")
    story.ran("receipt 7")
    intents = story.reply(("pay", A), ("send", "[]"), ("send", A), ("pay", '{"cause": "b"'))
    assert questions(intents) == ["2.2-approve"]
    assert isinstance(story.answer("2.2-approve", "refuse")[-1], ModelAsked)
    (*_, answered) = (m for m in story.state.messages if isinstance(m, ToolResults))
    assert [r.how for r in answered.results] == ["refused", "invalid", "refused", "invalid"]
    assert "receipt 7" in answered.results[0].text


@pytest.mark.fault("two approvals waiting")
def test_answers_land_on_their_own_calls_in_any_order_and_across_a_death() -> None:
    """Two approvals wait, one is refused, the process dies between the answers."""
    story = Story(tools.agent())
    story.reply(("send", A), ("send", B))
    assert story.answer("1.1-approve", "refuse", "not today") == []
    story.die()
    assert story.go() == [], "one question is still open"
    assert marked(story.answer("1.0-approve", "approve")) == ["1.0"]
    recorded = story.ran()[0]
    assert isinstance(recorded, ResultRecorded)
    assert (recorded.call, recorded.how) == ("1.1", "refused")
    assert "ann" in recorded.text
    assert "not today" in recorded.text


def test_one_yes_covers_every_attempt_of_its_call() -> None:
    """The same action with the same arguments needs no second yes."""
    story = Story(tools.agent())
    story.reply(("pay", B))
    story.answer("1.0-approve", "approve")
    story.die()
    assert marked(story.go()) == ["1.0"]
    assert list(story.state.questions) == ["1.0-approve"]


def test_a_yes_that_was_given_before_a_death_is_not_asked_for_again() -> None:
    """An answer is in the log."""
    story = Story(tools.agent())
    story.reply(("send", A), ("send", B))
    story.write(*(QuestionAnswered(id=q.id, answer="approve", who="ann", digest=q.digest) for q in story.state.waiting))
    opening = only(RunResumed, story.die())
    assert not opening.counted, "the first resume after an answer"
    assert marked(story.go()) == ["1.0"]


@pytest.mark.parametrize("approve", ["ask", "off"])
def test_a_question_whose_pause_was_lost_is_waited_for_and_its_call_does_not_run(
    approve: Literal["ask", "off"],
) -> None:
    """Questions too long for one line are split over several, and the process may die between any two of them."""
    story = Story(tools.agent(approve=approve))
    intents = story.reply(("send", A), ("send", B))
    questions_only = [e for e in intents if isinstance(e, QuestionAsked)]
    cut = Story(tools.agent(approve=approve))
    cut.go()
    cut.write(story.written[2][1][0], questions_only[0])
    cut.die()
    resumed = cut.go()
    if approve == "off":
        assert marked(resumed) == ["1.0"]
    else:
        assert [type(e) for e in resumed] == [PhaseChanged]
        assert questions(cut.answer("1.0-approve", "approve")) == ["1.1-approve"]
        assert marked(cut.answer("1.1-approve", "approve")) == ["1.0"]
    assert all(q.answer is not None for q in cut.state.questions.values())


def test_approve_off_says_yes_in_the_policys_name_and_never_answers_the_ladder() -> None:
    """What a policy may grant is an approval; what really happened it can't know."""
    story = Story(tools.agent(approve="off"))
    intents = story.reply(("send", A))
    assert marked(intents) == ["1.0"]
    (given,) = (e for e in intents if isinstance(e, QuestionAnswered))
    assert "policy" in given.who
    assert not any(isinstance(e, PhaseChanged) for e in intents), "it asks and answers in one line, without a pause"
    assert questions(story.ended("unknown")) == ["1.0-settle-1"]
    assert story.state.phase == "paused"
    assert story.go() == []


def test_a_yes_of_the_policys_makes_no_resume_free() -> None:
    """A run that approves itself and dies each time must reach its limit."""
    story = Story(tools.agent(approve="off"))
    story.reply(("send", A))
    story.die()
    story.go()
    opening = only(RunResumed, story.die())
    assert opening.counted


def test_a_run_that_waits_for_a_yes_goes_on_when_approvals_are_switched_off() -> None:
    """The current policy counts, and its life is a counted resume: no person answered."""
    story = Story(tools.agent())
    story.reply(("send", A), ("send", B))
    story.die()
    opening = only(RunResumed, story.die(agent=tools.agent(approve="off")))
    assert opening.counted
    assert marked(story.go()) == ["1.0"]


@pytest.mark.parametrize("how", ["failed", "invalid", "refused"])
def test_an_intent_that_did_not_happen_is_free(how: str) -> None:
    """One that failed, was invalid or was refused by a person had no effect."""
    pay = tools.make("pay", "non_idempotent", approval=True, once_per=("cause",))
    story = Story(tools.agent(pay))
    story.reply(("pay", '{"cause": 1}' if how == "invalid" else A))
    if how == "refused":
        story.answer("1.0-approve", "refuse")
    elif how == "failed":
        story.answer("1.0-approve", "approve")
        story.ended("nothing")
    assert questions(story.reply(("pay", A))) == ["2.0-approve"]


@pytest.mark.parametrize("how", ["ran", "found", "stated"])
def test_an_intent_that_happened_is_refused_however_the_arguments_are_spelled(how: str) -> None:
    """The intent is the values of the named arguments, not the text around them; other tools and values are free."""
    pay = tools.make("pay", "non_idempotent", lookup=True, visible_within=0, once_per=("cause",))
    story = Story(tools.agent(pay))
    story.reply(("pay", A))
    if how == "ran":
        story.ran("receipt")
    else:
        story.ended("unknown")
        if how == "found":
            story.go(ResultRecorded(call="1.0", how="found", text="receipt"))
        else:
            story.go(LookupAnswered(call="1.0", said="unsure"))
            story.answer("1.0-settle-1", "done", "receipt")
    again = story.reply(("pay", '{"cause":\n"\\u0061"}'), ("pay", B))
    (refused,) = (e for e in again if isinstance(e, ResultRecorded))
    assert (refused.how, refused.first) == ("refused", "1.0")
    assert "receipt" in refused.text
    assert marked(again) == ["2.1"]


def test_a_call_cut_off_at_the_length_limit_is_not_run() -> None:
    """Its arguments may be the beginning of others."""
    story = Story(tools.agent())
    reply = Reply(calls=(ToolCall(tool="put", arguments=A),), stop="length")
    (refused, *_) = story.reply(whole=reply)
    assert isinstance(refused, ResultRecorded)
    assert refused.how == "invalid"
    assert "length" in refused.text


def test_an_unknown_tool_is_answered_with_the_tools_there_are() -> None:
    """The model can only choose another name when it sees them."""
    story = Story(tools.agent(tools.LOOK, tools.PUT))
    (refused, *_) = story.reply(("lok", "{}"))
    assert isinstance(refused, ResultRecorded)
    assert refused.how == "invalid"
    assert "'lok'" in refused.text
    assert "look, put" in refused.text
    assert runner.Agent(name="agent", model=tools.Priced()).tool("lok") is None
