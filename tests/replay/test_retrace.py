"""Retrace: old histories compared with the current code. Divergence is another decision, drift a changed part."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest
from hypothesis import given, settings

import replay
import runner
from replay import Event, State
from replay._retrace import Decide
from replay.events import AttemptMarked, ModelAsked, PhaseChanged
from tests.support import tools
from tests.support.random_walk import RandomWalk
from tests.support.story import Line, Story
from tests.support.walks import walks

pytestmark = [pytest.mark.fault("code that decides otherwise after a deploy")]

MANY = settings(max_examples=25)


def _by(agent: runner.Agent) -> Decide:
    return lambda state, now: runner.decide(agent, state, now)


def _events(line: Line) -> list[replay.AnyEvent]:
    return [replay.decode(raw) for raw in line.events]


@MANY
@given(walks())
def test_the_code_that_wrote_a_history_decides_the_same_again(walk: RandomWalk) -> None:
    """Whatever happened, deaths, waits and answers included: else a retrace would cry wolf."""
    told = replay.retrace(walk.story.lines, _by(walk.story.agent))
    decided = [e for line in walk.story.lines for e in _events(line) if e.is_decision]
    assert told.divergence is None
    assert told.drift == ()
    assert (told.seq, told.decisions) == (walk.story.lines[-1].seq, len(decided))


@MANY
@given(walks())
def test_changed_words_are_drift_at_every_ask_and_no_divergence(walk: RandomWalk) -> None:
    """A prompt may be improved without every old run being called broken."""
    told = replay.retrace(walk.story.lines, _by(walk.story.agent.replace(instructions="Other words.")))
    turns = [
        line.seq
        for line in walk.story.lines
        for event in _events(line)
        if isinstance(event, ModelAsked) and event.purpose == "turn"
    ]
    assert told.divergence is None
    assert [drift.seq for drift in told.drift] == turns
    assert {drift.part for drift in told.drift} <= {"instructions"}


@MANY
@given(walks())
def test_a_tool_that_is_gone_diverges_at_the_first_line_that_tried_it(walk: RandomWalk) -> None:
    """The first place is named, and nothing behind it is judged."""
    agent = walk.story.agent
    tried = [
        (line.seq, state)
        for line, state in zip(walk.story.lines, _before(walk.story.lines), strict=True)
        for event in _events(line)
        if isinstance(event, AttemptMarked) and event.effect == "keyed"
    ]
    left = [tool for tool in agent.tools if tool.effect != "keyed"]
    told = replay.retrace(walk.story.lines, _by(agent.replace(tools=left)))
    if not tried:
        assert told.divergence is None or told.divergence.seq > 0
    else:
        assert told.divergence is not None
        assert told.divergence.seq <= tried[0][0]


def _before(lines: list[Line]) -> list[State]:
    return [replay.load(lines[:i]) for i in range(len(lines))]


def test_a_divergence_says_what_the_history_holds_and_what_would_be_written_instead() -> None:
    """A person must see both sides to judge which is right."""
    story = Story(tools.agent())
    story.reply(("look", '{"cause": "a"}'))
    story.ran()

    def paused(state: State, now: datetime) -> list[Event]:
        intents = runner.decide(story.agent, state, now)
        return [PhaseChanged(phase="paused")] if any(isinstance(e, AttemptMarked) for e in intents) else intents

    told = replay.retrace(story.lines, paused)
    assert told.divergence is not None
    assert told.divergence.why == "the history has the attempt of a call, the current code the phase"
    assert '"type":"attempt_marked"' in told.divergence.was[0]
    assert told.divergence.now == ('{"type":"phase_changed","phase":"paused","answer":null}',)
    assert told.divergence.at == story.lines[told.divergence.seq].at


def test_deciding_nothing_where_the_history_goes_on_is_a_divergence() -> None:
    """Silence is a decision too."""
    story = Story(tools.agent())
    story.go()
    told = replay.retrace(story.lines, lambda _state, _now: [])
    assert told.divergence is not None
    assert told.divergence.why == "the history goes on with the request to the model, the current code with nothing"


def test_decisions_that_a_long_line_split_over_two_are_compared_as_one() -> None:
    """Size is no decision: what did not fit into a line stands in the next."""
    story = Story(tools.agent())
    story.reply(("look", '{"cause": "a"}'), ("look", '{"cause": "b"}'))
    last = story.lines[-1]
    first, rest = last.events[:-1], last.events[-1:]
    split = [
        *story.lines[:-1],
        Line(last.seq, last.life, last.at, first),
        Line(last.seq + 1, last.life, last.at, [msgspec.Raw(bytes(raw)) for raw in rest]),
    ]
    told = replay.retrace(split, _by(story.agent))
    assert told.divergence is None
    assert told.decisions == replay.retrace(story.lines, _by(story.agent)).decisions
