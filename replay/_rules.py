"""How the fold's transitions are declared, and how one says that an event can't be.

A transition changes a draft, which the fold that made it owns alone. All that a draft holds is a value, except for its
conversation, which grows in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple

from replay._event import Event
from replay.state import Draft, State

T = TypeVar("T")
E = TypeVar("E", bound=Event)


Move = Callable[[Draft, E, datetime], None]


class Transitions(dict[type[Event], Move[Any]]):
    """What each event does to the state."""

    def on(self, kind: type[E]) -> Callable[[Move[E]], Move[E]]:
        """Declares a function as the transition of events of this class."""

        def declare(move: Move[E]) -> Move[E]:
            self[kind] = move
            return move

        return declare


def draft_of(state: State) -> Draft:
    """A draft that begins as `state`, which it never changes."""
    draft = Draft(*astuple(state))
    draft.messages = draft.messages.copy()
    return draft


def state_of(draft: Draft) -> State:
    """What a draft has come to. Nobody may use the draft after that."""
    return State(*astuple(draft))


@functools.cache
def _names(kind: type[msgspec.Struct], source: type[msgspec.Struct]) -> list[str]:
    return [name for name in kind.__struct_fields__ if name in source.__struct_fields__]


def shared(kind: type[msgspec.Struct], source: msgspec.Struct) -> dict[str, Any]:
    """The fields that a part of a state, or a story, has in common with what it is made of."""
    return {name: getattr(source, name) for name in _names(kind, type(source))}


class Broken(Exception):
    """An event contradicts the state it meets. `step` turns it into `IllegalEvent`."""


def require(holds: object, why: str) -> None:
    """Raises `Broken(why)` unless `holds`."""
    if not holds:
        raise Broken(why)


def present(value: T | None, why: str) -> T:
    """`value`, or `Broken(why)` when there is none."""
    if value is None:
        raise Broken(why)
    return value
