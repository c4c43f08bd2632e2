"""Findings that the story of a run adds up to, beyond those that one event shows."""

import replay
from replay.events import AttemptEnded, LookupAnswered, UnknownEvent
from replay.stories import LifeStory
from tests.review.audit import stories
from tests.support import tools
from tests.support.story import Story

TEN = (
    ("settled-by-person", "ann settled patch (4.0) with done: it was patched"),
    ("rerun", "push (2.0) ran again, attempt 2: a repeat was safe: the service still remembered its key"),
    ("intent-refused", "pay (5.1) was not run: call 5.0 had already done the same"),
    (
        "lost-ask",
        "the reply to the request for turn 2 never came; its bound counts as spent (1000 + 100 tokens, $0.5000)",
    ),
    ("clock-back", "life 5 began with the wall clock set back; older keys count as forgotten"),
    ("workspace-accepted", "ann accepted files that were changed from outside: c.txt"),
    ("drift", "life 4 began with other definitions than the one before: instructions"),
    (
        "settled-by-service",
        "patch (3.0) may have acted when it was interrupted; the service was asked, and it had happened",
    ),
    ("limits-changed", "the limits changed: dollars 5 -> 9"),
    ("stopped", "the run was stopped in life 5 (Interrupted): SIGTERM"),
)


def test_a_run_in_which_much_happened_has_a_finding_for_each() -> None:
    """The stop of life 5 is one, although life 6 went on."""
    found = replay.audit(stories.eventful().lines).findings
    assert {(finding.kind, finding.says) for finding in found} >= set(TEN)
    assert all(finding.seqs == tuple(sorted(set(finding.seqs))) for finding in found)


def test_a_quiet_run_has_no_findings() -> None:
    """What is underlined everywhere is underlined nowhere."""
    assert replay.audit(stories.plain().lines).findings == []


def _lives(story: Story) -> list[LifeStory]:
    return replay.audit(story.lines).lives


def test_each_life_says_how_it_ended_and_what_lay_before_it() -> None:
    """By its last line alone: a process that died wrote none."""
    lives = _lives(stories.eventful())
    assert [life.end for life in lives] == ["unsaid", "unsaid", "unsaid", "unsaid", "stopped", "done"]
    assert [life.gap for life in lives] == [None, 40, 600, 30, 1, 86_400]
    assert [life.pid for life in lives] == [1, 2, 3, 4, 5, 6]
    stopped = lives[4].stopped
    assert stopped is not None
    assert stopped.reason == "Interrupted"


def test_a_life_that_paused_says_so() -> None:
    """Nobody has to guess whether that process died."""
    story = Story(tools.agent())
    story.reply(("send", '{"cause": "a"}'))
    assert [life.end for life in _lives(story)] == ["paused"]


def test_a_call_stays_open_when_only_its_last_attempt_certainly_did_nothing() -> None:
    """One unknown attempt, and a later certain failure settles nothing."""
    story = Story(tools.agent())
    story.reply(("push", '{"cause": "a"}'))
    story.ended("unknown")
    story.tick(60)
    story.go()
    story.write(AttemptEnded(call="1.0", n=2, did="nothing", error="refused"))
    told = replay.audit(story.lines)
    (found,) = (finding for finding in told.findings if finding.kind == "in-doubt")
    assert told.calls[0].in_doubt
    assert found.call == "1.0"
    assert found.seqs == (told.calls[0].attempts[0].seq,)


def test_a_call_is_open_until_the_service_is_believed_that_it_is_missing() -> None:
    """A `Missing` that came too early says nothing; a believed one says that every attempt so far did nothing."""
    story = Story(tools.agent())
    story.reply(("patch", '{"cause": "a"}'))
    story.ended("unknown")
    story.go(LookupAnswered(call="1.0", said="missing"))
    assert replay.audit(story.lines).calls[0].in_doubt
    story.tick(60)
    story.go()
    story.write(LookupAnswered(call="1.0", said="missing"))
    told = replay.audit(story.lines)
    assert not told.calls[0].in_doubt
    assert "in-doubt" not in {finding.kind for finding in told.findings}
    story.go()
    (found,) = replay.audit(story.lines).findings[:1]
    assert "the service said that no attempt so far had done anything" in found.says


def test_an_event_of_a_later_version_is_named() -> None:
    """What this version can't tell it must not pass over in silence."""
    story = stories.plain()
    story.write(UnknownEvent("teleported", b'{"type":"teleported","ignorable":true}', ignorable=True))  # type: ignore[arg-type] # a story writes our own events otherwise
    (found,) = replay.audit(story.lines).findings
    assert (found.kind, found.seqs) == ("unknown-event", (len(story.lines) - 1,))
    assert "teleported" in found.says
