"""The defaults inside an argument, on the object itself.

msgspec leaves a dataclass's default to the class and then does not write it down: a person would approve an order
without its amount, and the same order with the amount written out would be another intent.
"""

import dataclasses
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def with_defaults(value: T) -> T:
    """`value`, with every default of every dataclass in it set on its object."""
    rest: list[object] = [value]
    while rest:
        one = rest.pop()
        if dataclasses.is_dataclass(one) and not isinstance(one, type) and hasattr(one, "__dict__"):
            for field in dataclasses.fields(one):
                if field.name not in one.__dict__ and field.default is not dataclasses.MISSING:
                    object.__setattr__(one, field.name, field.default)
        rest += _parts(one)
    return value


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    kind = type(value)
    slots: Iterable[str] = getattr(kind, "__struct_fields__", ())
    names = [*slots, *(one.name for one in getattr(kind, "__attrs_attrs__", ()))]
    if dataclasses.is_dataclass(kind):
        names += [field.name for field in dataclasses.fields(kind)]
    return [getattr(value, name) for name in names if hasattr(value, name)]
