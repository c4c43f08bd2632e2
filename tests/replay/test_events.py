"""What a class of event says of itself holds: where it may stand, and what may follow a stop."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import msgspec
import pytest

import replay
from replay import Event
from replay._event import EVENTS
from replay._fold import TRANSITIONS
from replay.events import PhaseChanged, RunStopped
from tests.replay.positions import ASKED, FAILED, FORKED, POSITIONS, RESUMED, STARTED, STATES, STOPPED, Position
from tests.support.story import BEGIN, Line

PHASES = ("new", "model", "tools", "paused", "done")
GUIDE = Path(replay.__file__).with_name("README.md")


@pytest.mark.fault("an event that the fold does not know")
def test_every_event_has_a_transition_and_an_example() -> None:
    """One that is missing would be an error in the middle of a fold."""
    assert set(EVENTS.values()) == set(TRANSITIONS) == {type(position.event) for position in POSITIONS}


@pytest.mark.parametrize(("tag", "kind"), EVENTS.items())
def test_the_guide_names_every_event(tag: str, kind: type[Event]) -> None:
    """Its tag and its class stand in one row of the table."""
    rows = GUIDE.read_text(encoding="utf-8").splitlines()
    assert any(f"`{tag}`" in row and f"`{kind.__name__}`" in row for row in rows if row.startswith("|"))


@pytest.mark.fault("an event where it makes no sense")
@pytest.mark.parametrize(("tag", "phase"), list(itertools.product(EVENTS, PHASES)))
def test_an_event_is_legal_in_a_phase_exactly_where_its_class_says(tag: str, phase: str) -> None:
    """Legal means that a state of this phase takes it; illegal, that none does, whatever else it holds."""
    here = [p for p in POSITIONS if replay.tag(p.event) == tag and p.state.phase == phase]
    if phase in EVENTS[tag].legal:
        assert here, "there is no example"
        for state, event in here:
            replay.step(state, event, BEGIN)
        return
    assert not here
    for state in (s for s in STATES if s.phase == phase):
        for event in (p.event for p in POSITIONS if replay.tag(p.event) == tag):
            with pytest.raises(replay.IllegalEvent, match="it belongs to") as illegal:
                replay.step(state, event, BEGIN, seq=41)
            assert (illegal.value.seq, illegal.value.tag, illegal.value.phase) == (41, tag, phase)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(PHASES, ("tools", "paused", "done"))))
def test_a_phase_changes_only_as_the_loop_does(old: str, new: Literal["tools", "paused", "done"]) -> None:
    """It is checked against the state, and never trusted."""
    taken = False
    for state in (s for s in [*STATES, *(p.state for p in POSITIONS)] if s.phase == old):
        try:
            after = replay.step(state, PhaseChanged(phase=new, answer=state.answer), BEGIN)
        except replay.IllegalEvent:
            continue
        taken = True
        assert after.phase == new
    assert taken == ((old, new) in {("model", "done"), ("tools", "paused"), ("paused", "tools")})


STOPPABLE = [p for p in POSITIONS if p.state.phase not in {"new", "done"}]
AFTER_A_STOP = {
    *("run_resumed", "run_forked", "limits_changed", "question_answered", "request_refused", "run_stopped"),
    *("rule_added", "message_received", "child_rested"),
}


@pytest.mark.parametrize("position", STOPPABLE, ids=lambda p: f"{replay.tag(p.event)}-{p.state.phase}")
def test_a_stopped_run_takes_only_a_new_life_a_fork_limits_a_request_or_another_stop(position: Position) -> None:
    """Rule 2 of the fold: whatever else came would be a run that goes on after its own stop."""
    stopped = replay.step(position.state, STOPPED, BEGIN)
    if replay.tag(position.event) in AFTER_A_STOP:
        replay.step(stopped, position.event, BEGIN)
        return
    with pytest.raises(replay.IllegalEvent, match="the run is stopped"):
        replay.step(stopped, position.event, BEGIN)


def test_a_run_that_was_stopped_for_good_takes_no_new_life_and_no_other_stop_but_a_fork_of_it_goes_on() -> None:
    """A person's word is final for this run; its history may be carried on by another."""
    state = next(s for s in STATES if s.phase == "tools")
    stopped = replay.step(state, RunStopped(reason="StoppedByPerson", final=True), BEGIN)
    for event in (RESUMED, STOPPED):
        with pytest.raises(replay.IllegalEvent, match="stopped for good"):
            replay.step(stopped, event, BEGIN)
    assert replay.step(stopped, FORKED, BEGIN).stopped is None


def test_an_illegal_event_in_a_log_names_its_line() -> None:
    """Whoever repairs a log must find the place."""

    def line(seq: int, *events: Event) -> Line:
        return Line(seq, 1, BEGIN, [msgspec.Raw(replay.encode(event)) for event in events])

    lines = [line(0), line(1, STARTED), line(2, ASKED), line(3, FAILED, ASKED)]
    with pytest.raises(replay.IllegalEvent, match=r"^line 3: model_asked is not legal in phase model: ") as illegal:
        replay.load(lines)
    assert illegal.value.seq == 3
    assert illegal.value.hint
    with pytest.raises(replay.IllegalEvent, match=r"^a new line: "):
        replay.step(replay.NEW, ASKED, BEGIN)
