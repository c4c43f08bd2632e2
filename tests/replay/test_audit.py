"""Audit: what a run did, told from its lines alone, and what deserves a second look."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings

import replay
from replay.events import LookupAnswered, ModelFailed, ResultRecorded, RunResumed, RunStopped, WorkspaceAccepted
from replay.messages import Reply
from replay.values import FileHash
from tests.support import tools
from tests.support.random_walk import RandomWalk
from tests.support.story import Story
from tests.support.walks import calls, results, walks


@settings(max_examples=25)
@given(walks(deploys=True))
def test_the_story_tells_what_the_state_and_the_events_say(walk: RandomWalk) -> None:
    """The same spend, the same calls with the same results, the same lives."""
    told, state = replay.audit(walk.story.lines), walk.story.state
    assert (told.phase, told.turns, told.resumes, told.spent, told.seq) == (
        state.phase,
        state.turns,
        state.resumes,
        state.spent,
        state.seq,
    )
    assert {call.id: call.arguments for call in told.calls} == {i: c.arguments for i, c in calls(walk).items()}
    assert {c.id: (c.how, c.text) for c in told.calls if c.how} == {
        i: (r.how, r.text) for i, r in results(walk).items()
    }
    resumed = [e for _, events in walk.story.written for e in events if isinstance(e, RunResumed)]
    assert [life.pid for life in told.lives if life.kind == "resume"] == [event.pid for event in resumed]
    assert sum(ask.came == "lost" or ask.billed for ask in told.asks) == state.spent.lost_asks
    assert {call.id for call in told.calls if call.how is None and call.attempts} >= set(state.in_doubt)


@settings(max_examples=10)
@given(walks(deploys=True))
def test_a_story_that_goes_on_is_at_each_line_the_one_that_is_told_from_the_start(walk: RandomWalk) -> None:
    """Whoever follows a run tells each line once."""
    teller = replay.Teller()
    for number, line in enumerate(walk.story.lines, 1):
        teller.line(line)
        assert teller.done() == replay.audit(walk.story.lines[:number])


@settings(max_examples=25)
@given(walks())
def test_every_finding_names_lines_of_the_history(walk: RandomWalk) -> None:
    """An auditor looks them up."""
    told = replay.audit(walk.story.lines)
    for finding in told.findings:
        assert finding.seqs
        assert set(finding.seqs) <= set(range(told.seq + 1))
        assert finding.says


def _yes(story: Story) -> None:
    for question in [q.id for q in story.state.waiting]:
        story.answer(question, "approve")


def _rerun(story: Story) -> None:
    story.reply(("pay", '{"cause": "a"}'))
    _yes(story)
    story.die()
    story.go()


def _told(story: Story) -> None:
    story.reply(("send", '{"cause": "a"}'))
    _yes(story)
    story.ended("unknown")
    story.answer("1.0-settle-1", "done", "it was sent")


def _lost(story: Story) -> None:
    story.go()
    story.die()


def _billed(story: Story) -> None:
    story.go()
    story.go(ModelFailed(error="cut", transient=True, billed=True))


def _refused(story: Story) -> None:
    story.reply(("pay", '{"cause": "a"}'), ("pay", '{"cause": "a"}'))
    _yes(story)
    story.ran()


def _clock(story: Story) -> None:
    story.go()
    story.die(clock_back=True)


def _accepted(story: Story) -> None:
    story.write(WorkspaceAccepted(by="ann", files=(FileHash(path="a.txt", sha256=None),)))


def _drift(story: Story) -> None:
    story.die(agent=story.agent.replace(instructions="Other words."))


def _stopped(story: Story) -> None:
    story.write(RunStopped(reason="StoppedByPerson", final=True, detail="by ann"))


def _lossy(story: Story) -> None:
    story.reply(("look", '{"cause": "a"}'))
    story.go(ResultRecorded(call="1.0", how="ran", text="\ufffd", n=1, lossy=True))


def _lossy_reply(story: Story) -> None:
    story.reply(whole=Reply(text="\ufffd", lossy=True))


def _expired(story: Story) -> None:
    story.reply(("pay", '{"cause": "a"}'))
    _yes(story)
    story.tick(timedelta(days=400).total_seconds())
    story.die()
    story.go()


@pytest.mark.parametrize(
    ("kind", "act", "says"),
    [
        ("rerun", _rerun, "the service still remembered its key"),
        ("settled-by-person", _told, "ann settled send (1.0) with done: it was sent"),
        ("lost-ask", _lost, "its bound counts as spent"),
        ("billed-failure", _billed, "may have been billed"),
        ("intent-refused", _refused, "call 1.0 had already done the same"),
        ("clock-back", _clock, "began with the wall clock set back"),
        ("workspace-accepted", _accepted, "ann accepted files that were changed from outside: a.txt"),
        ("drift", _drift, "other definitions than the one before: instructions"),
        ("stopped", _stopped, "for good (StoppedByPerson): by ann"),
        ("lossy", _lossy, "could not be kept exactly as it came"),
        ("lossy", _lossy_reply, "the reply for turn 1 could not be kept exactly as it came"),
        ("key-expired", _expired, "could not run again with its key"),
    ],
)
def test_a_finding_underlines(kind: str, act: Callable[[Story], None], says: str) -> None:
    """Each kind, from a history in which it happened, and not from one in which it did not."""
    story = Story(tools.agent())
    assert kind not in {finding.kind for finding in replay.audit(story.lines).findings}
    act(story)
    found = [finding for finding in replay.audit(story.lines).findings if finding.kind == kind]
    assert found
    assert says in found[0].says


@pytest.mark.fault("a key that is kept for ever")
def test_a_key_that_is_kept_for_ever_is_never_found_expired() -> None:
    """The date on which it would be does not exist."""
    story = Story(tools.agent(tools.make("push", "keyed", key_ttl=timedelta.max, attempts=1)))
    story.reply(("push", '{"cause": "a"}'))
    assert story.ended("unknown")
    assert "key-expired" not in {finding.kind for finding in replay.audit(story.lines).findings}


def test_a_lookup_that_could_not_say_is_told_with_its_error() -> None:
    """A person who settles the call wants to know what was tried before them."""
    story = Story(tools.agent())
    story.reply(("patch", '{"cause": "a"}'))
    story.ended("unknown")
    asked = story.go()
    assert asked or story.state.calls[0].lookups.in_flight
    story.go(LookupAnswered(call="1.0", said="unsure", error="boom"))
    lookup = replay.audit(story.lines).calls[0].lookups[0]
    assert (lookup.said, lookup.error) == ("unsure", "boom")
