"""Forks of random histories in a difficult walk: what the parent did is not done again by itself, whatever happens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.messages import AssistantMessage, ToolCall
from tests.runs.walking import FORK, Again
from tests.support.random_walk import RandomWalk
from tests.support.walks import TAPE, walks

TAPES = st.binary(min_size=TAPE, max_size=TAPE)
MATTERS = {"pay", "push", "patch", "send"}


def own(walk: Again) -> dict[str, ToolCall]:
    """Every call that the fork's model made or took over, by id."""
    said = [m.reply for m in walk.story.state.messages if isinstance(m, AssistantMessage)]
    return {call.id: call for reply in said for call in reply.calls}


def check(parent: RandomWalk, seq: int, tape: bytes) -> None:
    """Walk the fork to its end and hold what it did against what its parent did."""
    walk = Again(parent, seq % len(parent.story.lines), tape)
    walk.walk()
    calls = own(walk)
    for call, said in calls.items():
        if said.tool in MATTERS:
            assert walk.seen.of(call) <= 1, f"{said.tool} {call} happened {walk.seen.of(call)} times"
    happened = [f for f in walk.fork_guard if walk.seen.get(f.call, 0)]
    for effect in happened:
        for call, said in calls.items():
            if said.tool == effect.tool and said.arguments == effect.arguments and call not in walk.seen.inherited:
                assert not walk.seen.get(f"{FORK}:{call}", 0), f"{said.tool} {call} is what {effect.call} did before"
    causes = [said.arguments for call, said in calls.items() if said.tool == "pay" and walk.seen.of(call)]
    behind = {f.arguments for f in happened if f.tool == "pay" and f.call not in walk.seen.inherited}
    assert len(causes) == len(set(causes))
    assert not behind & set(causes)


@settings(max_examples=60)
@given(walks(), st.integers(min_value=0), TAPES)
def test_a_fork_does_nothing_again_that_its_parent_did_after_the_line(
    parent: RandomWalk, seq: int, tape: bytes
) -> None:
    """Deaths, late arrivals, forgotten keys and lookups that can't say included; a person tells the truth."""
    check(parent, seq, tape)


@pytest.mark.full
@settings(max_examples=700)
@given(walks(deploys=True), st.integers(min_value=0), TAPES)
def test_a_fork_does_nothing_again_in_many_walks_with_deploys(parent: RandomWalk, seq: int, tape: bytes) -> None:
    """The same for parents whose code changed on the way."""
    check(parent, seq, tape)
