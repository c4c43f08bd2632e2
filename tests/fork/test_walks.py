"""Forks of random histories in a difficult world: what the parent did is not done again by itself, whatever happens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replay
from replay import Replied
from tests.decide.walks import TAPE, walks
from tests.decide.world import World
from tests.fork.walking import FORK, Again

TAPES = st.binary(min_size=TAPE, max_size=TAPE)
MATTERS = {"pay", "push", "patch", "send"}


def own(world: Again) -> dict[str, replay.ToolCall]:
    """Every call that the fork's model made or took over, by id."""
    said = [m.reply for m in world.story.state.messages if isinstance(m, Replied)]
    return {call.id: call for reply in said for call in reply.calls}


def check(parent: World, seq: int, tape: bytes) -> None:
    """Walk the fork to its end and hold what it did against what its parent did."""
    world = Again(parent, seq % len(parent.story.lines), tape)
    world.walk()
    calls = own(world)
    for call, said in calls.items():
        if said.tool in MATTERS:
            assert world.seen.of(call) <= 1, f"{said.tool} {call} happened {world.seen.of(call)} times"
    happened = [f for f in world.fence if world.seen.get(f.call, 0)]
    for effect in happened:
        for call, said in calls.items():
            if said.tool == effect.tool and said.arguments == effect.arguments and call not in world.seen.inherited:
                assert not world.seen.get(f"{FORK}:{call}", 0), f"{said.tool} {call} is what {effect.call} did before"
    causes = [said.arguments for call, said in calls.items() if said.tool == "pay" and world.seen.of(call)]
    behind = {f.arguments for f in happened if f.tool == "pay" and f.call not in world.seen.inherited}
    assert len(causes) == len(set(causes))
    assert not behind & set(causes)


@settings(max_examples=60)
@given(walks(), st.integers(min_value=0), TAPES)
def test_a_fork_does_nothing_again_that_its_parent_did_behind_the_line(parent: World, seq: int, tape: bytes) -> None:
    """Deaths, late arrivals, forgotten keys and lookups that can't say included; a person tells the truth."""
    check(parent, seq, tape)


@pytest.mark.full
@settings(max_examples=700)
@given(walks(deploys=True), st.integers(min_value=0), TAPES)
def test_a_fork_does_nothing_again_in_many_walks_with_deploys(parent: World, seq: int, tape: bytes) -> None:
    """The same for parents whose code changed on the way."""
    check(parent, seq, tape)
