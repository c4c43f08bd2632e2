"""Keys, changed code, errors that are not a no: when a call must not run again."""

from __future__ import annotations

from datetime import timedelta

import pytest

import runner
from replay.events import AttemptEnded, AttemptMarked, ResultRecorded, WaitUntil
from tests.policy.test_ladder import KEYED, ONCE, lookup, result, tried, waited
from tests.support import tools
from tests.support.story import Story, only, questions

KEPT = tools.KEPT.total_seconds()


def test_a_keyed_call_runs_again_with_the_key_of_its_first_marker() -> None:
    """The service recognises the repeat by it."""
    story = tried(KEYED)
    first = story.state.calls[0].attempts[0].key
    waited(story, story.ended("unknown"))
    marked = only(AttemptMarked, story.go())
    assert marked.key == first == runner.key("r", "1.0")


@pytest.mark.parametrize(("age", "again"), [(KEPT - 10, True), (KEPT - 9, False), (KEPT + 1, False)])
def test_a_key_counts_only_while_it_outlasts_another_timeout(age: float, again: bool) -> None:
    """A key that expires while the repeat is under way protects nothing; its age runs from the first marker."""
    story = tried(KEYED)
    story.die(age)
    intents = story.go()
    assert isinstance(intents[-1], AttemptMarked) == again
    assert questions(intents) == ([] if again else ["1.0-settle-1"])


@pytest.mark.fault("a key that is kept for ever")
def test_a_key_that_is_kept_for_ever_has_no_last_day() -> None:
    """A date that far away does not exist, and a resume that computed it raised."""
    story = tried(tools.make("push", "keyed", key_ttl=timedelta.max))
    story.die(KEPT)
    assert isinstance(story.go()[-1], AttemptMarked)


@pytest.mark.parametrize(("age", "again"), [(20, True), (21, False)])
def test_a_key_counts_only_while_it_outlasts_what_may_land_late(age: float, again: bool) -> None:
    """A repeat that timed out can reach the service up to `visible_within` later, and must still be recognised."""
    kept = timedelta(seconds=60)
    story = tried(tools.make("push", "keyed", lookup=True, timeout=10, visible_within=30, key_ttl=kept))
    story.die(age)
    assert isinstance(story.go()[-1], AttemptMarked) == again


def test_a_key_ages_from_the_first_marker_however_often_it_was_sent() -> None:
    """A service forgets a key by its first request, not by its last."""
    story = tried(KEYED)
    for _ in range(5):
        story.die(KEPT / 6)
        assert isinstance(story.go()[-1], AttemptMarked)
    story.die(KEPT / 6)
    assert questions(story.go()) == ["1.0-settle-1"]


def test_a_key_that_expires_during_the_backoff_is_not_sent_again() -> None:
    """What was harmless when the wait began may not be when it ends."""
    story = tried(tools.make("push", "keyed", lookup=True, timeout=10, key_ttl=timedelta(seconds=23)))
    assert isinstance(story.ended("unknown")[-1], WaitUntil)
    story.tick(4)
    assert not lookup(story.go())


@pytest.mark.fault("clock set back")
def test_a_key_from_before_the_clock_was_set_back_is_never_sent_again() -> None:
    """The log's clock no longer knows how old it is."""
    story = tried(KEYED)
    story.die(1, clock_back=True)
    assert questions(story.go()) == ["1.0-settle-1"]


@pytest.mark.fault("clock set back")
def test_a_key_first_sent_after_the_clock_was_set_back_counts() -> None:
    """Only what was marked before is in doubt."""
    story = Story(tools.agent(KEYED))
    story.go()
    story.die(1, clock_back=True)
    story.reply(("push", '{"cause": "a"}'))
    story.die(1)
    assert isinstance(story.go()[-1], AttemptMarked)


def test_an_unknown_attempt_and_a_later_refusal_leave_the_call_open() -> None:
    """The refusal says nothing about the attempt before it."""
    story = tried(KEYED)
    for n in (1, 2):
        waited(story, story.ended("unknown" if n == 1 else "nothing", retry_after=5))
        story.go()
    assert questions(story.ended("nothing")) == ["1.0-settle-1"]
    assert story.state.in_doubt == ("1.0",)


def test_an_attempt_that_certainly_did_nothing_is_tried_again_only_if_the_service_said_when() -> None:
    """`ToolFailed` with a time is worth another attempt, without one it is pointless."""
    story = tried(ONCE)
    assert waited(story, story.ended("nothing", retry_after=30)) == 30
    story.go()
    failed = result(story.ended("nothing"))
    assert (failed.how, failed.n) == ("failed", 2)
    assert "boom" in failed.text


def test_a_refusing_service_is_tried_three_times() -> None:
    """The tool's attempts bound these too."""
    story = tried(ONCE)
    for _ in range(2):
        waited(story, story.ended("nothing", retry_after=1))
        story.go()
    assert result(story.ended("nothing", retry_after=1)).how == "failed"


def test_a_read_that_raised_has_simply_failed() -> None:
    """It can't have changed anything, and the model may ask again if it wants to."""
    story = tried(tools.LOOK)
    assert result(story.ended("nothing")).how == "failed"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (KEYED, tools.make("push", "idempotent")),
        (KEYED, tools.make("push", "reads")),
        (KEYED, tools.make("push", "non_idempotent", lookup=True)),
        (KEYED, tools.make("other", "keyed")),
        (tools.LOOK, tools.make("look", "idempotent")),
    ],
    ids=lambda tool: f"{tool.name}-{tool.effect}",
)
def test_when_the_current_code_declares_another_effect_a_person_decides(
    before: runner.Tool, after: runner.Tool
) -> None:
    """What is known of a repeat was known of other code."""
    story = tried(before)
    story.die(agent=tools.agent(after))
    assert questions(story.go()) == ["1.0-settle-1"]


def test_a_tool_that_no_longer_takes_the_arguments_of_an_open_call_goes_to_a_person() -> None:
    """It can't be run again, nor said to have failed."""

    @runner.tool(effect="idempotent", name="put")
    def other(*, title: str) -> str:
        raise AssertionError(title)

    story = tried(tools.PUT)
    story.die(agent=tools.agent(other))
    assert questions(story.go()) == ["1.0-settle-1"]
    refused = result(story.answer("1.0-settle-1", "rerun"))
    assert refused.how == "invalid"
    assert "cause: there is no such argument" in refused.text


def test_a_person_may_order_a_rerun_by_changed_code() -> None:
    """Their word clears the attempts of the old code; the new marker tells the new effect."""
    story = tried(KEYED)
    story.die(agent=tools.agent(tools.make("push", "idempotent")))
    story.go()
    marked = only(AttemptMarked, story.answer("1.0-settle-1", "rerun")[-1:])
    assert (marked.effect, marked.n) == ("idempotent", 2)


def test_a_rerun_of_a_tool_that_is_gone_becomes_a_result_the_model_can_read() -> None:
    """The run must not hang on a tool that nobody will bring back."""
    story = tried(KEYED)
    story.die(agent=tools.agent(ONCE))
    story.go()
    refused = result(story.answer("1.0-settle-1", "rerun"))
    assert refused.how == "invalid"
    assert "no such tool" in refused.text


def test_a_wave_of_reads_is_marked_at_once_and_no_more_than_eight() -> None:
    """Reads can't disturb each other, and nine connections at once may disturb a service."""
    story = Story(tools.agent())
    wave = story.reply(*[("look", '{"cause": "a"}')] * 10, ("put", '{"cause": "a"}'))
    assert [e.call for e in wave if isinstance(e, AttemptMarked)] == [f"1.{i}" for i in range(8)]
    outcomes = [ResultRecorded(call=f"1.{i}", how="ran", text="", n=1) for i in range(1, 8)]
    rest = story.go(AttemptEnded(call="1.0", n=1, did="nothing"), *outcomes)
    assert [e.call for e in rest if isinstance(e, AttemptMarked)] == ["1.8", "1.9"], "a write waits for the wave"
    assert result(rest).call == "1.0"
