"""The opening of a life: which runs can't be carried on, which wait, and what an ask may not be sent without."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as changed

import replay
import runner
from replay.events import QuestionAnswered, ReplySaved, RunResumed, RunStopped
from replay.messages import CostBound, Reply
from replay.values import Limits
from runner._policy import resume_check
from tests.support import tools
from tests.support.story import Story, only

A = '{"cause": "a"}'


def test_a_run_without_a_first_event_cannot_be_carried_on() -> None:
    """Its directory exists and says nothing."""
    with pytest.raises(runner.errors.NotStarted, match="r"):
        resume_check.check(replay.NEW, "r")


def test_a_run_of_a_later_version_is_read_and_not_continued() -> None:
    """What is not understood might forbid the next step."""
    state = changed(Story(tools.agent()).state, unknown=("moon_phase",))
    with pytest.raises(runner.errors.CannotContinue, match="moon_phase"):
        resume_check.check(state, "r")


def test_a_run_that_a_person_stopped_for_good_stays_stopped_and_any_other_stop_may_be_left() -> None:
    """A stop is a reason beside the phase; only a person's is final."""
    story = Story(tools.agent())
    story.write(RunStopped(reason="Interrupted"))
    resume_check.check(story.state, "r")
    story.write(RunStopped(reason="StoppedByPerson", final=True, detail="by ann"))
    with pytest.raises(runner.errors.StoppedByPerson, match="by ann"):
        resume_check.check(story.state, "r")


def test_a_pause_waits_until_there_is_a_new_answer_for_every_question() -> None:
    """Looking at a paused run appends no line."""
    story = Story(tools.agent())
    assert not resume_check.waits(story.agent, story.state, story.now)
    story.reply(("send", A), ("send", A))
    assert resume_check.waits(story.agent, story.state, story.now)
    story.answer("1.0-approve", "approve")
    assert resume_check.waits(story.agent, story.state, story.now)
    assert not resume_check.waits(tools.agent(approve="off"), story.state, story.now)
    story.write(QuestionAnswered(id="1.1-approve", answer="approve", who="ann", digest=replay.digest(A.encode())))
    assert not resume_check.waits(story.agent, story.state, story.now)


@pytest.mark.fault("many pauses")
def test_a_run_that_parks_thirty_times_for_a_person_never_reaches_its_limit_of_resumes() -> None:
    """Answers are progress that a person made."""
    story = Story(tools.agent(limits=Limits(resumes=1)))
    story.die()
    story.reply(*[("send", A)] * 30)
    for asked in story.state.waiting:
        story.write(QuestionAnswered(id=asked.id, answer="approve", who="ann", digest=asked.digest))
        opening = only(RunResumed, story.die())
        assert not opening.counted
    assert story.state.resumes == 1
    assert isinstance(story.die()[-1], RunStopped)


def test_approve_off_does_not_wake_a_run_that_waits_for_the_ladder() -> None:
    """It never answers what really happened."""
    story = Story(tools.agent())
    story.reply(("send", A))
    story.answer("1.0-approve", "approve")
    story.ended("unknown")
    assert resume_check.waits(tools.agent(approve="off"), story.state, story.now)


def test_a_limit_in_dollars_without_a_price_is_refused_before_anything_is_written() -> None:
    """An ask that counts as free never reaches its limit."""
    free = tools.Priced(most=CostBound(input_tokens=1))
    agent = tools.agent(limits=Limits(dollars=1)).replace(model=free)
    story = Story(agent)
    with pytest.raises(runner.BadAgent, match="priced"):
        story.decide()
    with pytest.raises(runner.BadAgent, match="priced"):
        story.die()
    assert len(story.lines) == 1


def test_a_final_answer_needs_no_price() -> None:
    """Nothing more is asked."""
    story = Story(tools.agent())
    story.go()
    story.write(ReplySaved(reply=Reply(text="42")))
    free = tools.Priced(most=CostBound(input_tokens=1))
    story.die(agent=tools.agent(limits=Limits(dollars=1)).replace(model=free))
    assert [replay.tag(event) for event in story.go()] == ["phase_changed"]


def test_a_bound_that_cannot_be_logged_is_the_agents_fault_and_says_so() -> None:
    """What may be spent is written before it is spent; a NaN can't be."""
    story = Story(tools.agent().replace(model=tools.Priced(most=CostBound(dollars=float("nan")))))
    with pytest.raises(runner.BadAgent, match="priced gives can't be logged"):
        story.decide()
