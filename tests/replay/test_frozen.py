"""A state as bytes: what a snapshot holds comes back as the same state, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import replay
from tests.decide.walks import walks
from tests.decide.world import World


@settings(max_examples=25)
@given(walks(deploys=True))
def test_a_state_comes_back_from_its_bytes_as_it_was(world: World) -> None:
    """A resume from a snapshot and one from the whole log must hold the same."""
    state = world.story.state
    assert replay.restore(replay.dump(state)) == state
    half = replay.load(world.story.lines[: len(world.story.lines) // 2])
    again = replay.restore(replay.dump(half))
    assert again is not None
    assert replay.load(world.story.lines[len(world.story.lines) // 2 :], again) == state


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"turns":"x"}', b'{"messages":[{"type":"nope"}]}'])
def test_bytes_that_are_no_state_give_none(data: bytes) -> None:
    """A snapshot is a cache: what can't be read is passed over."""
    assert replay.restore(data) is None
