"""How the fold's transitions are declared, and how one says that an event can't be."""

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from replay._event import Event
from replay.state import State

T = TypeVar("T")
E = TypeVar("E", bound=Event)


class Transitions(dict[type[Event], Callable[[State, Any, datetime], State]]):
    """What each event does to the state."""

    def on(
        self, kind: type[E]
    ) -> Callable[[Callable[[State, E, datetime], State]], Callable[[State, E, datetime], State]]:
        """Declares a function as the transition of events of this class."""

        def declare(move: Callable[[State, E, datetime], State]) -> Callable[[State, E, datetime], State]:
            self[kind] = move
            return move

        return declare


@functools.cache
def _names(kind: type[msgspec.Struct], source: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in source.__struct_fields__)


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
