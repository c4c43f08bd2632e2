"""How a transition says that an event cannot be: one exception, caught where the line's number is known."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Broken(Exception):
    """An event contradicts the state it meets. `step` turns it into `IllegalEvent`."""


def require(holds: object, why: str) -> None:
    """Raise `Broken(why)` unless `holds`."""
    if not holds:
        raise Broken(why)


def present(value: T | None, why: str) -> T:
    """`value`, or `Broken(why)` when there is none."""
    if value is None:
        raise Broken(why)
    return value
