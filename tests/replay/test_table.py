"""The table at the top of the vocabulary is the truth: code and words are held against each other, pair by pair."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Literal

import msgspec
import pytest

import replay
from replay import Event, _events
from tests.decide.story import BEGIN, Line
from tests.replay.positions import ASKED, FAILED, FORKED, POSITIONS, RESUMED, STARTED, STATES, STOPPED, Position

PHASES = ("new", "model", "tools", "paused", "done")


@dataclass(frozen=True)
class Row:
    """One event as the table describes it."""

    kind: str
    phases: frozenset[str]
    fields: list[str]


def read(doc: str) -> dict[str, Row]:
    """The rows of the table in a docstring, by tag; its columns are where its heading puts them."""
    lines = doc.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("tag "))
    columns = [lines[begin].index(word) for word in ("tag", "kind", "legal in", "fields")]
    rows: dict[str, list[str]] = {}
    tag = ""
    for line in itertools.takewhile(str.strip, lines[begin + 1 :]):
        cells = [line[a:b].strip() for a, b in zip(columns, [*columns[1:], None], strict=True)]
        tag = cells[0] or tag
        rows[tag] = [f"{old} {new}".strip() for old, new in zip(rows.get(tag, [""] * 4), cells, strict=True)]
    return {tag: Row(kind, frozenset(legal.split()), fields.split()) for tag, (_, kind, legal, fields) in rows.items()}


DOC = _events.__doc__ or ""
TABLE = read(DOC)
KINDS = {replay.tag(p.event): type(p.event) for p in POSITIONS}
PAIRS = list(itertools.product(sorted(TABLE), PHASES))


def test_the_table_names_every_event_that_the_fold_and_the_decoder_know() -> None:
    """An event missing from one of the three would be unreadable, illegal or undocumented."""
    tags = {str(kind.__struct_config__.tag) for kind in replay.TRANSITIONS}
    known = {str(kind.__struct_config__.tag) for kind in Event.__subclasses__()}
    assert set(TABLE) == tags == known == set(KINDS)
    assert {row.kind for row in TABLE.values()} == {"input", "decision", "both"}


@pytest.mark.parametrize("tag", sorted(TABLE))
def test_the_table_names_every_field_of_an_event(tag: str) -> None:
    """A field that nobody described is one that nobody may rely on."""
    assert sorted(TABLE[tag].fields) == sorted(KINDS[tag].__struct_fields__)


@pytest.mark.parametrize(("tag", "phase"), PAIRS)
def test_an_event_is_legal_in_a_phase_exactly_where_the_table_says(tag: str, phase: str) -> None:
    """Legal means that a state of this phase takes it; illegal, that none does, whatever else it holds."""
    here = [p for p in POSITIONS if replay.tag(p.event) == tag and p.state.phase == phase]
    if phase in TABLE[tag].phases:
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
def test_a_phase_changes_only_along_the_ways_that_the_vocabulary_names(
    old: str, new: Literal["tools", "paused", "done"]
) -> None:
    """It is checked against the state, and never trusted."""
    ways = set(re.findall(r"from (\w+) to (\w+)", DOC))
    taken = False
    for state in (s for s in [*STATES, *(p.state for p in POSITIONS)] if s.phase == old):
        try:
            after = replay.step(state, replay.PhaseChanged(phase=new, answer=state.answer), BEGIN)
        except replay.IllegalEvent:
            continue
        taken = True
        assert after.phase == new
    assert taken == ((old, new) in ways)


STOPPABLE = [p for p in POSITIONS if p.state.phase not in {"new", "done"}]
BEHIND_A_STOP = {"run_resumed", "run_forked", "limits_changed", "question_answered", "run_stopped"}


@pytest.mark.parametrize("position", STOPPABLE, ids=lambda p: f"{replay.tag(p.event)}-{p.state.phase}")
def test_a_stopped_run_takes_only_a_new_life_a_fork_limits_an_answer_or_another_stop(position: Position) -> None:
    """Rule 2 of the fold: whatever else came would be a run that goes on behind its own stop."""
    stopped = replay.step(position.state, STOPPED, BEGIN)
    if replay.tag(position.event) in BEHIND_A_STOP:
        replay.step(stopped, position.event, BEGIN)
        return
    with pytest.raises(replay.IllegalEvent, match="the run is stopped"):
        replay.step(stopped, position.event, BEGIN)


def test_a_run_that_was_stopped_for_good_takes_no_new_life_and_no_other_stop_but_a_fork_of_it_goes_on() -> None:
    """A person's word is final for this run; its history may be carried on by another (spec row 2)."""
    state = next(s for s in STATES if s.phase == "tools")
    stopped = replay.step(state, replay.RunStopped(reason="StoppedByPerson", final=True), BEGIN)
    for event in (RESUMED, STOPPED):
        with pytest.raises(replay.IllegalEvent, match="stopped for good"):
            replay.step(stopped, event, BEGIN)
    assert replay.step(stopped, FORKED, BEGIN).stopped is None


def test_an_illegal_event_in_a_log_names_its_line() -> None:
    """Whoever repairs a log must find the place (issue: an illegal event names its sequence number)."""

    def line(seq: int, *events: Event) -> Line:
        return Line(seq, 1, BEGIN, [msgspec.Raw(replay.encode(event)) for event in events])

    lines = [line(0), line(1, STARTED), line(2, ASKED), line(3, FAILED, ASKED)]
    with pytest.raises(replay.IllegalEvent, match=r"^line 3: model_asked is not legal in phase model: ") as illegal:
        replay.load(lines)
    assert illegal.value.seq == 3
    assert illegal.value.hint
    with pytest.raises(replay.IllegalEvent, match=r"^a new line: "):
        replay.step(replay.NEW, ASKED, BEGIN)
