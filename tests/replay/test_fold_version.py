"""`FOLD_VERSION` is raised when the fold or the state changes: a snapshot of the old one must not be taken for the new.

A state that the current fold would not make, restored as if it had, is wrong in silence. So the states after every
event in every phase are pinned here.
"""

from __future__ import annotations

import hashlib

import pytest
from msgspec.structs import replace

import replay
from tests.replay.positions import POSITIONS
from tests.support.story import BEGIN

PINNED = (25, "3610d48c60b0a26d")
"""The version, and the digest of the states it makes."""


@pytest.mark.fault("a snapshot of another fold is believed")
def test_the_states_are_those_of_this_version() -> None:
    """Raise `FOLD_VERSION` when a state of the same lines holds something else now, and pin the new digest."""
    made = [replay.step(position.state, position.event, BEGIN) for position in POSITIONS]
    whole = hashlib.sha256(b"".join(replay.dump(replace(state, definitions=None)) for state in made))
    assert (replay.FOLD_VERSION, whole.hexdigest()[:16]) == PINNED
