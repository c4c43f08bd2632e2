"""Asking the model by examples: retries, pauses, limits and what a lost ask costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

import runner
from replay import Event
from replay.events import (
    LimitsChanged,
    MessageReceived,
    ModelAsked,
    ModelFailed,
    PhaseChanged,
    ReplyRefused,
    ReplySaved,
    RunResumed,
    RunStopped,
    WaitUntil,
)
from replay.messages import AssistantMessage, Message, Reply, ToolCall, ToolResults, Usage, UserMessage
from replay.values import Limits, Summary
from runner._policy import request
from runner._runs import status
from runner.errors import STOPS
from tests.support import tools
from tests.support.story import Story, only

A = '{"cause": "a"}'


def failed(
    story: Story, *, transient: bool = True, billed: bool = False, retry_after: float | None = None
) -> list[Event]:
    """The ask that was sent comes to nothing; what comes next."""
    return story.go(ModelFailed(error="busy", transient=transient, billed=billed, retry_after=retry_after))


def stopped(intents: list[Event]) -> str:
    """The reason of the stop that these intents end with."""
    stop = intents[-1]
    assert isinstance(stop, RunStopped)
    return stop.reason


def test_a_failed_ask_is_retried_five_times_on_the_ladders_schedule_and_then_the_run_stops() -> None:
    """A provider that is down for minutes is waited for; one that stays down needs somebody to look."""
    story = Story(tools.agent())
    story.go()
    waits = []
    for n in range(2, 7):
        wait = only(WaitUntil, failed(story))
        waits.append((wait.until - story.now).total_seconds())
        assert story.go() == []
        story.now = wait.until
        asked = only(ModelAsked, story.go())
        assert asked.n == n
    assert waits == [4, 16, 60, 60, 60]
    assert stopped(failed(story)) == "ModelUnavailable"


def test_the_provider_may_ask_for_a_longer_wait() -> None:
    """A rate limit says when it ends."""
    story = Story(tools.agent())
    story.go()
    wait = only(WaitUntil, failed(story, retry_after=300))
    assert (wait.until - story.now).total_seconds() == 300


def test_a_permanent_failure_stops_at_once_and_a_resume_asks_again_from_one() -> None:
    """Nothing is gained by asking five times with a wrong password; after a resume it may have been changed."""
    story = Story(tools.agent())
    story.go()
    assert stopped(failed(story, transient=False)) == "ModelUnavailable"
    story.die()
    asked = only(ModelAsked, story.go())
    assert asked.n == 1


@pytest.mark.parametrize("reason", ["Interrupted", "Parked", "TurnLimit"])
def test_a_stop_forgets_how_often_the_model_failed_and_not_when_it_wants_to_be_asked_again(reason: str) -> None:
    """A worker that is deployed anew asked a provider at once that had said in how long: a kill did not."""
    story = Story(tools.agent())
    story.go()
    due = only(WaitUntil, failed(story, retry_after=300)).until
    story.go(RunStopped(reason=reason, detail="deploy"))
    story.die()
    assert only(WaitUntil, story.go()).until == due
    story.now = due
    assert only(ModelAsked, story.go()).n == 1


def test_a_worker_comes_back_no_sooner_than_the_model_wants_and_a_person_whenever_they_like() -> None:
    """Who resumes a run that its model stopped by hand may have changed the model, or paid."""
    story = Story(tools.agent())
    story.go()
    while not isinstance(said := failed(story, retry_after=1800)[-1], RunStopped):
        assert isinstance(said, WaitUntil)
        story.now = said.until
        story.go()
    assert status.of(story.state).wake == story.now + timedelta(seconds=1800)
    story.die()
    assert only(ModelAsked, story.go()).n == 1


def test_a_reply_ends_the_row_of_failures() -> None:
    """Five in a row, not five in a run."""
    story = Story(tools.agent())
    for _ in range(4):
        story.go()
        failed(story)
        story.tick(1000)
        (asked, *_) = story.reply(("nope", "{}"))[-1:]
        assert isinstance(asked, ModelAsked)
        assert asked.n == 1


def test_a_lost_ask_costs_its_bound_and_is_asked_for_again() -> None:
    """Its reply may have been paid for."""
    story = Story(tools.agent())
    story.go()
    story.die()
    assert [type(event) for event in story.go()] == [ModelAsked]
    spent = story.state.spent
    assert (spent.lost_asks, spent.lost_dollars, spent.lost_input_tokens, spent.lost_output_tokens) == (
        1,
        0.5,
        1000,
        100,
    )
    assert (spent.dollars, spent.total_dollars, spent.tokens) == (0, 0.5, 1100)


@pytest.mark.parametrize(("billed", "asks"), [(True, 1), (False, 0)])
def test_a_failure_costs_its_bound_only_if_it_may_have_been_billed(billed: bool, asks: int) -> None:
    """A refused connection costs nothing, a broken stream may have cost all of it."""
    story = Story(tools.agent())
    story.go()
    failed(story, billed=billed)
    assert story.state.spent.lost_asks == asks


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(turns=2), "TurnLimit"), (Limits(tokens=40), "TokenLimit"), (Limits(dollars=0.5), "DollarLimit")],
)
def test_each_limit_stops_before_the_next_ask_and_says_which_it_was(limits: Limits, reason: str) -> None:
    """Two replies of 20 tokens and 0.25 dollars reach each of these exactly: at the limit is not below it."""
    story = Story(tools.agent(limits=limits))
    reply = Reply(calls=(ToolCall(tool="nope"),), usage=Usage(input_tokens=15, output_tokens=5), dollars=0.25)
    assert isinstance(story.reply(whole=reply)[-1], ModelAsked)
    assert stopped(story.reply(whole=reply)) == reason
    assert issubclass(STOPS[reason], runner.Stopped)


@pytest.mark.fault("spend over many lives")
def test_a_run_that_dies_after_every_ask_stops_at_the_dollars_of_one_that_never_dies() -> None:
    """Spend is in the log, not in the process."""
    story = Story(tools.agent(limits=Limits(dollars=4.5, resumes=100)))
    for _ in range(9):
        assert isinstance(story.go()[-1], ModelAsked)
        story.die()
    assert stopped(story.go()) == "DollarLimit"
    assert story.state.spent.total_dollars == 4.5


def test_a_final_answer_is_given_even_at_the_limit() -> None:
    """It is paid for; only the next ask is refused."""
    story = Story(tools.agent(limits=Limits(turns=1)))
    done = story.reply(whole=Reply(text="42"))[-1]
    assert isinstance(done, PhaseChanged)
    assert (story.state.phase, story.state.answer) == ("done", "42")


def test_a_reply_that_only_paused_is_followed_by_another_ask() -> None:
    """Some providers hand back control in the middle of an answer."""
    story = Story(tools.agent())
    assert isinstance(story.reply(whole=Reply(text="wait", stop="pause"))[-1], ModelAsked)


def test_the_current_limits_win_and_only_a_change_is_logged() -> None:
    """A change is an event; decisions read limits from the state alone."""
    story = Story(tools.agent(limits=Limits(turns=5)))
    assert [type(e) for e in story.die()] == [RunResumed]
    assert [type(e) for e in story.die(agent=tools.agent(limits=Limits(turns=0)))] == [RunResumed, LimitsChanged]
    assert stopped(story.go()) == "TurnLimit"


def test_the_eleventh_resume_stops_and_the_twelfth_is_refused_without_a_line() -> None:
    """The count is durable before anything else, so a run that dies in every life still reaches it."""
    story = Story(tools.agent())
    for n in range(1, 11):
        assert [type(e) for e in story.die()] == [RunResumed]
        assert story.state.resumes == n
        story.go()
    assert stopped(story.die()) == "TooManyResumes"
    assert story.go() == []
    with pytest.raises(runner.errors.TooManyResumes):
        story.die()
    story.die(agent=tools.agent(limits=Limits(resumes=11)))
    assert isinstance(story.go()[-1], ModelAsked)


def summary_after_three(messages: Sequence[Message], summary: Summary | None, usage: Usage) -> runner.Summarise | None:
    """A policy: once there are more than three messages, summarise all of them."""
    assert summary is None or isinstance(usage, Usage)
    return runner.Summarise(len(messages), "Be short.") if len(messages) > 3 else None


def test_a_summary_is_asked_for_like_any_ask_costs_no_turn_and_is_never_paid_for_twice() -> None:
    """It is state: a resume finds it in the log."""
    agent = tools.agent().replace(context=summary_after_three)
    story = Story(agent)
    story.reply(("nope", "{}"))
    asked = only(ModelAsked, story.reply(("nope", "{}"))[-1:])
    assert (asked.purpose, asked.upto) == ("summary", 5)
    assert request.build(agent, story.state).instructions == "Be short."
    story.die()
    asked = only(ModelAsked, story.go())
    assert asked.purpose == "summary", "the summary was lost with the process"
    asked = only(ModelAsked, story.reply(whole=Reply(text="so far")))
    assert (asked.purpose, story.state.turns) == ("turn", 2)
    story.die()
    asked = only(ModelAsked, story.go())
    assert asked.purpose == "turn", "a saved summary is not paid for twice"
    said = only(UserMessage, request.build(agent, story.state).messages)
    assert said.text.startswith("do it")
    assert said.text.endswith("so far")


def test_what_is_sent_is_what_was_asked_for_also_when_messages_came_with_it() -> None:
    """With the waiting messages the conversation may be long enough for a summary: that is for the next ask."""
    agent = tools.agent().replace(context=summary_after_three)
    story = Story(agent)
    story.go()
    story.go(MessageReceived(id="m", who="olga", text="and be quick"))
    asked = only(ModelAsked, story.reply(("nope", "{}"))[-1:])
    assert (asked.purpose, asked.messages) == ("turn", ("m",))
    sent = request.build(agent, story.state)
    assert (sent.purpose, sent.messages[-1]) == ("turn", UserMessage("and be quick"))


def test_a_summary_never_tears_results_from_their_calls() -> None:
    """Providers refuse results whose calls are not in the conversation: the cut moves back to before the reply."""
    agent = tools.agent().replace(context=runner.SummariseAfter(tokens=100, keep=1))
    story = Story(agent)
    story.reply(("nope", "{}"))
    big = Reply(calls=(ToolCall(tool="nope"),), usage=Usage(input_tokens=101))
    asked = only(ModelAsked, story.reply(whole=big)[-1:])
    assert (asked.purpose, asked.upto) == ("summary", 3)
    story.reply(whole=Reply(text="so far"))
    assert [type(m) for m in request.build(agent, story.state).messages] == [UserMessage, AssistantMessage, ToolResults]


def test_a_second_summary_is_made_of_the_first_and_of_what_came_since() -> None:
    """The messages that the first stands for are not sent again."""
    agent = tools.agent().replace(context=runner.SummariseAfter(tokens=100, keep=0))
    story = Story(agent)
    calls = (ToolCall(tool="nope"),)
    story.reply(whole=Reply(calls=calls, usage=Usage(input_tokens=200)))
    story.reply(whole=Reply(text="so far"))
    story.reply(whole=Reply(calls=calls, usage=Usage(input_tokens=60)))
    asked = only(ModelAsked, story.reply(whole=Reply(calls=calls, usage=Usage(input_tokens=101)))[-1:])
    assert (asked.purpose, asked.upto) == ("summary", 7)
    first, *since = request.build(agent, story.state).messages
    assert isinstance(first, UserMessage)
    assert first.text.endswith("so far")
    assert [type(m) for m in since] == [AssistantMessage, ToolResults] * 2


def test_a_short_conversation_is_not_summarised() -> None:
    """A summary of the task alone would only lose something."""
    story = Story(tools.agent().replace(context=runner.SummariseAfter(tokens=0, keep=6)))
    big = Reply(calls=(ToolCall(tool="nope"),), usage=Usage(input_tokens=101))
    asked = only(ModelAsked, story.reply(whole=big)[-1:])
    assert asked.purpose == "turn"


@pytest.mark.fault("empty reply")
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(text=""), "neither text nor a call"),
        (Reply(text=" \n"), "neither text nor a call"),
        (Reply(text="", raw='{"reasoning_content": "hm"}'), "neither text nor a call"),
        (Reply(text="", stop="length"), "neither text nor a call"),
        (Reply(text="The answer is", stop="length"), "cut at its length limit"),
    ],
    ids=["empty", "blank", "reasoning alone", "nothing but a cut", "cut"],
)
def test_a_reply_that_is_no_answer_is_asked_again_once_and_then_stops_the_run(reply: Reply, why: str) -> None:
    """A finished run's answer is one; after a resume the model is asked again."""
    story = Story(tools.agent())
    story.go()
    refused, asked = story.go(ReplySaved(reply=reply))
    assert isinstance(refused, ReplyRefused)
    assert why in refused.why
    assert isinstance(asked, ModelAsked)
    assert story.state.messages[-1] == UserMessage(refused.why)
    assert story.state.turns == 1
    assert stopped(story.go(ReplySaved(reply=reply))) == "EmptyReply"
    story.die()
    again = story.go()
    assert [type(event) for event in again] == [ReplyRefused, ModelAsked]
    assert story.go(ReplySaved(reply=Reply(text="42"))) == [PhaseChanged(phase="done", answer="42")]


@pytest.mark.fault("empty reply")
def test_a_reply_between_two_empty_ones_begins_the_count_anew() -> None:
    """Only what happens twice in a row stops a run."""
    story = Story(tools.agent())
    story.go()
    story.go(ReplySaved(reply=Reply(text="")))
    story.reply(("look", A))
    story.ran("saw", call="2.0")
    assert [type(event) for event in story.go(ReplySaved(reply=Reply(text="")))] == [ReplyRefused, ModelAsked]


REFUSED = ModelFailed(error="duplicate tool_call id", transient=False, refused_conversation=True)
ODD = (
    ToolCall(tool="look", arguments=A, provider_id="c1", id="1.0"),
    ToolCall(tool="look", arguments='{"cause": ', provider_id="c1", id="1.1"),
    ToolCall(tool="look", arguments="", provider_id="", id="1.2"),
)


def odd_conversation() -> Story:
    """A story whose last ask sends a reply with calls that a strict server refuses."""
    story = Story(tools.agent())
    story.go()
    story.go(ReplySaved(reply=Reply(text=" ", calls=ODD, stop="tool_calls", raw='{"as it": "came"}')))
    story.ran("saw", call="1.0")
    return story


@pytest.mark.fault("conversation refused")
def test_a_refused_conversation_is_sent_once_more_rebuilt_and_stays_so() -> None:
    """The faithful copy comes first; later asks do not pay for the refusal again."""
    story = odd_conversation()
    before = request.build(story.agent, story.state).messages
    asked = only(ModelAsked, story.go(REFUSED))
    assert asked.rebuilt_upto == len(before)
    sent = request.build(story.agent, story.state).messages
    rebuilt = next(message.reply for message in sent if isinstance(message, AssistantMessage))
    assert (rebuilt.raw, rebuilt.text) == ("", "")
    assert [(call.id, call.provider_id) for call in rebuilt.calls] == [("1.0", ""), ("1.1", ""), ("1.2", "")]
    assert [json.loads(call.arguments) for call in rebuilt.calls] == [{"cause": "a"}, {"invalid": '{"cause": '}, {}]
    story.reply(("look", A))
    (later,) = [event for event in story.ran("saw", call="2.0") if isinstance(event, ModelAsked)]
    assert later.rebuilt_upto == asked.rebuilt_upto
    assert later.digests.messages != asked.digests.messages


@pytest.mark.fault("conversation refused")
def test_a_conversation_that_is_refused_rebuilt_stops_the_run_and_says_so() -> None:
    """Nothing more can be taken out of it; and without a reply in it nothing could be from the first."""
    story = odd_conversation()
    story.go(REFUSED)
    assert stopped(story.go(REFUSED)) == "ConversationRefused"
    story = Story(tools.agent())
    story.go()
    assert stopped(story.go(REFUSED)) == "ConversationRefused"
