"""A state as bytes: what a snapshot holds comes back as the same state, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import replay
from tests.support.random_walk import RandomWalk
from tests.support.walks import walks

pytestmark = [pytest.mark.fault("a snapshot of other bytes")]


@settings(max_examples=25)
@given(walks(deploys=True))
def test_a_state_comes_back_from_its_bytes_as_it_was(walk: RandomWalk) -> None:
    """A resume from a snapshot and one from the whole log must hold the same."""
    state = walk.story.state
    assert replay.restore(replay.dump(state)) == state
    half = replay.load(walk.story.lines[: len(walk.story.lines) // 2])
    again = replay.restore(replay.dump(half))
    assert again is not None
    assert replay.load(walk.story.lines[len(walk.story.lines) // 2 :], again) == state


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"turns":"x"}', b'{"messages":[{"type":"nope"}]}'])
def test_bytes_that_are_no_state_give_none(data: bytes) -> None:
    """A snapshot is a cache: what can't be read is passed over."""
    assert replay.restore(data) is None
