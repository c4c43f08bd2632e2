"""The ladder by examples: which rung an open call is on, and how long it waits there."""

from __future__ import annotations

from typing import Literal

import pytest

import runner
from replay import Event
from replay.events import AttemptMarked, LookupAnswered, LookupAsked, ResultRecorded, WaitUntil
from replay.messages import ToolResults
from replay.state import Attempt
from runner._policy import ladder
from tests.support import tools
from tests.support.story import Story, only, questions

IDEMPOTENT = tools.make("put", "idempotent", attempts=5)
KEYED = tools.make("push", "keyed")
ONCE = tools.make("send", "non_idempotent")
ASKED = tools.make("patch", "non_idempotent", lookup=True, visible_within=20)
AT_ONCE = tools.make("patch", "non_idempotent", lookup=True, visible_within=0)


def tried(tool: runner.Tool) -> Story:
    """A story whose first call, of this tool, is in flight."""
    story = Story(tools.agent(tool))
    assert isinstance(story.reply((tool.name, '{"cause": "a"}'))[-1], AttemptMarked)
    return story


def waited(story: Story, intents: list[Event]) -> float:
    """The seconds that these intents wait; then they have passed."""
    wait = only(WaitUntil, intents)
    seconds = (wait.until - story.now).total_seconds()
    story.tick(seconds - 0.001)
    assert story.go() == [], "a wait is logged once, and nothing is due before its end"
    story.tick(0.001)
    return seconds


def looked(story: Story, said: Literal["missing", "unsure"], *, error: str | None = None) -> list[Event]:
    """The service answers; what comes next."""
    return story.go(LookupAnswered(call="1.0", said=said, error=error))


def lookup(intents: list[Event]) -> bool:
    """Whether these intents ask the service; gives whether its `Missing` will be believed."""
    asked = only(LookupAsked, intents)
    return asked.believes


def result(intents: list[Event]) -> ResultRecorded:
    """The result among these intents."""
    return next(e for e in intents if isinstance(e, ResultRecorded))


def test_attempts_wait_4_16_60_and_60_seconds_after_the_one_before_ended() -> None:
    """4ⁿ seconds, at most 60, from when the attempt ended, not from when it began."""
    story = tried(IDEMPOTENT)
    for seconds in (4, 16, 60, 60):
        assert waited(story, story.ended("unknown", after=7)) == seconds
        assert isinstance(story.go()[-1], AttemptMarked)
    assert questions(story.ended("unknown")) == ["1.0-settle-1"], "five attempts, and then a person"


@pytest.mark.parametrize(("asked_for", "waits"), [(2.0, 4), (90.0, 90), (None, 4)])
def test_a_service_that_asks_for_more_time_gets_it_and_one_that_asks_for_less_does_not(
    asked_for: float | None, waits: float
) -> None:
    """`retry_after` lengthens the wait and never shortens it."""
    story = tried(IDEMPOTENT)
    assert waited(story, story.ended("unknown", retry_after=asked_for)) == waits


def test_an_attempt_that_ended_by_a_death_is_not_waited_for_and_not_counted() -> None:
    """The death took its time, and deaths have a bound of their own: the limit on resumes."""
    story = tried(IDEMPOTENT)
    for n in range(2, 8):
        story.die()
        marked = only(AttemptMarked, story.go())
        assert marked.n == n
    assert waited(story, story.ended("unknown")) == 4


def test_a_call_that_was_never_marked_simply_runs_after_a_death() -> None:
    """No marker, no attempt: nothing may have happened."""
    story = Story(tools.agent(tools.SEND))
    story.reply(("send", '{"cause": "a"}'))
    story.die()
    story.answer("1.0-approve", "approve")
    assert isinstance(story.state.calls[0].attempts[0], Attempt)
    assert story.state.calls[0].in_flight


def test_a_once_call_without_a_lookup_goes_to_a_person_and_runs_again_only_on_their_word() -> None:
    """Nothing else can tell whether a repeat would do it twice."""
    story = tried(ONCE)
    assert questions(story.ended("unknown")) == ["1.0-settle-1"]
    assert story.state.phase == "paused"
    assert isinstance(story.answer("1.0-settle-1", "rerun")[-1], AttemptMarked)
    assert questions(story.ended("unknown")) == ["1.0-settle-2"], "each unknown attempt is a question of its own"
    assert result(story.answer("1.0-settle-2", "done", "it was sent")).text == "it was sent"
    (message,) = (m for m in story.state.messages if isinstance(m, ToolResults))
    assert message.results[0].how == "stated"


def test_a_persons_rerun_goes_beyond_the_cap() -> None:
    """They know more than the schedule does."""
    story = tried(ONCE)
    for n in range(1, 7):
        story.ended("unknown")
        marked = only(AttemptMarked, story.answer(f"1.0-settle-{n}", "rerun")[-1:])
        assert marked.n == n + 1
    assert result(story.ended("nothing", retry_after=1)).how == "failed", "an attempt past the cap earns no other"


def test_a_service_that_says_missing_too_early_is_asked_again_when_everything_has_landed() -> None:
    """An effect on its way is missing now."""
    story = tried(ASKED)
    assert not lookup(story.ended("unknown"))
    story.tick(5)
    assert waited(story, looked(story, "missing")) == 15
    assert lookup(story.go())
    assert isinstance(looked(story, "missing")[-1], AttemptMarked)


def test_a_wait_that_the_current_code_makes_longer_is_logged_anew() -> None:
    """A run that sleeps until an old moment would find nothing due then, and nothing to sleep for."""
    story = tried(ASKED)
    lookup(story.ended("unknown"))
    assert isinstance(looked(story, "missing")[-1], WaitUntil)
    story.die(0, agent=tools.agent(tools.make("patch", "non_idempotent", lookup=True, visible_within=50)))
    assert waited(story, story.go()) == 50


def test_a_missing_of_a_tool_that_acts_only_inside_this_process_is_believed_at_once() -> None:
    """When the process is dead, nothing of it can land any more."""
    story = tried(AT_ONCE)
    story.die(0)
    assert lookup(story.go())
    assert isinstance(looked(story, "missing")[-1], AttemptMarked)


@pytest.mark.parametrize(("asked_for", "waits"), [(None, 4), (90.0, 90)])
def test_an_attempt_after_a_believed_missing_waits_like_any_other(asked_for: float | None, waits: float) -> None:
    """The service that lost a request may be in trouble, and may have said for how long."""
    story = tried(AT_ONCE)
    assert lookup(story.ended("unknown", retry_after=asked_for))
    assert waited(story, looked(story, "missing")) == waits
    assert isinstance(story.go()[-1], AttemptMarked)


def test_a_missing_with_no_attempts_left_has_failed() -> None:
    """Every attempt certainly did nothing, and the tool's cap is reached."""
    story = tried(tools.make("patch", "non_idempotent", lookup=True, visible_within=0, attempts=1))
    assert lookup(story.ended("unknown"))
    assert result(looked(story, "missing")).how == "failed"


def test_a_lookup_that_raises_is_asked_again_twice_on_the_schedule_and_then_a_person() -> None:
    """A service that is down for a minute is not worth a person's time; one that stays down is."""
    story = tried(ASKED)
    lookup(story.ended("unknown"))
    assert waited(story, looked(story, "unsure", error="down")) == 4
    lookup(story.go())
    assert waited(story, looked(story, "unsure", error="down")) == 16
    lookup(story.go())
    assert questions(looked(story, "unsure", error="down")) == ["1.0-settle-1"]


def test_an_unsure_service_passes_the_question_up_at_once() -> None:
    """It answered: asking again would get the same."""
    story = tried(ASKED)
    lookup(story.ended("unknown"))
    assert questions(looked(story, "unsure")) == ["1.0-settle-1"]


@pytest.mark.parametrize("tool", [IDEMPOTENT, KEYED, ASKED, tools.LOOK], ids=lambda tool: tool.effect)
def test_a_service_that_wants_a_persons_answer_gets_it_before_another_attempt(tool: runner.Tool) -> None:
    """A repeat would only be asked the same, however harmless it is."""
    story = tried(tool)
    assert questions(story.ended("unknown", asks=True)) == ["1.0-settle-1"]
    assert story.state.waiting[0].why == "boom"
    assert isinstance(story.answer("1.0-settle-1", "rerun", "blue")[-1], AttemptMarked)


def test_what_a_person_said_with_a_rerun_stays_until_they_say_something_else() -> None:
    """The next attempts hand it to the service that asked."""
    story = tried(ONCE)

    def told() -> str:
        notes = ladder.operator_notes(story.state.calls[0], story.state)
        return runner.Call("r", "1.0", "t", 1, "k", {}, operator_notes=notes).operator_note

    assert told() == ""
    for n, (text, stays) in enumerate([("", ""), ("blue", "blue"), ("", "blue"), ("red", "red")], start=1):
        story.ended("unknown")
        story.answer(f"1.0-settle-{n}", "rerun", text)
        assert told() == stays


def test_after_a_persons_rerun_the_service_is_asked_anew() -> None:
    """What it could not say of the attempts before says nothing of the new one."""
    story = tried(ASKED)
    lookup(story.ended("unknown"))
    looked(story, "unsure")
    story.answer("1.0-settle-1", "rerun")
    asked = only(LookupAsked, story.ended("unknown"))
    assert asked.n == 1


def test_a_death_during_a_lookup_asks_the_service_again() -> None:
    """A lookup reads: it may be repeated for ever."""
    story = tried(ASKED)
    lookup(story.ended("unknown"))
    story.die()
    assert not lookup(story.go())


@pytest.mark.fault("forked child")
@pytest.mark.parametrize(("timeout", "waits"), [(30, 30), (5, 20)])
def test_missing_is_not_believed_while_a_child_of_the_process_before_may_act(timeout: float, waits: float) -> None:
    """The resume ends no attempt of a child: its timeout and the time to be seen count from there on."""
    story = tried(tools.make("patch", "non_idempotent", lookup=True, visible_within=20, timeout=timeout))
    story.die(100, lease_lost=True)
    assert lookup(story.go()) is False
    assert waited(story, looked(story, "missing")) == waits
    story.die(100, lease_lost=True)
    assert waited(story, story.go()) == waits
    assert lookup(story.go()) is True
