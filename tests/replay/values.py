"""Values made from types: what hypothesis may draw for an event, and how each part of one may be changed.

Made from the structs' own annotations, so that an event or a field added tomorrow is covered without a word here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect
from msgspec.structs import replace

import replay
from replay._event import EVENTS as BY_TAG

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
MOMENTS = st.datetimes(timezones=st.just(UTC))
EVENTS = tuple(BY_TAG.values())


def _plain(kind: inspect.Type) -> inspect.Type:
    """The type without what an export does with it."""
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def drawn(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Any value of this type that an event may hold."""
    kind = _plain(kind)
    if isinstance(kind, inspect.StructType):
        return st.builds(kind.cls, **{field.name: drawn(field.type) for field in kind.fields})
    if isinstance(kind, inspect.UnionType):
        return st.one_of([drawn(one) for one in kind.types])
    if isinstance(kind, inspect.LiteralType):
        return st.sampled_from(kind.values)
    if isinstance(kind, inspect.VarTupleType):
        return st.lists(drawn(kind.item_type), max_size=2).map(tuple)
    if isinstance(kind, inspect.DictType):
        return st.dictionaries(drawn(kind.key_type), drawn(kind.value_type), max_size=2)
    plain: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
        inspect.StrType: TEXT,
        inspect.IntType: st.integers(),
        inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
        inspect.BoolType: st.booleans(),
        inspect.NoneType: st.none(),
        inspect.DateTimeType: MOMENTS,
    }
    return plain[type(kind)]


def events() -> st.SearchStrategy[replay.Event]:
    """Any event of the vocabulary, each kind as often as another."""
    return st.sampled_from(EVENTS).flatmap(lambda kind: drawn(inspect.type_info(kind)))


def sample(kind: inspect.Type) -> Any:
    """One value of this type."""
    kind = _plain(kind)
    if isinstance(kind, inspect.StructType):
        return kind.cls(**{field.name: sample(field.type) for field in kind.fields if field.required})
    if isinstance(kind, inspect.UnionType):
        return sample(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    plain: dict[type[inspect.Type], Any] = {
        inspect.StrType: "s",
        inspect.IntType: 7,
        inspect.FloatType: 7.5,
        inspect.BoolType: True,
        inspect.VarTupleType: (),
        inspect.DictType: {},
        inspect.DateTimeType: datetime(2026, 2, 1, tzinfo=UTC),
    }
    return plain[type(kind)]


def changed(kind: inspect.Type, value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """`value` with one part changed, as (path of the part, the changed value), for every part and in several ways."""
    kind = _plain(kind)
    if isinstance(kind, inspect.StructType):
        for field in kind.fields:
            name = f"{path}.{field.name}" if path else field.name
            for deeper, other in changed(field.type, getattr(value, field.name), name):
                yield deeper, replace(value, **{field.name: other})
    elif isinstance(kind, inspect.UnionType):
        yield from _of_union(kind, value, path)
    elif isinstance(kind, inspect.VarTupleType):
        yield path, (*(value or ()), sample(kind.item_type))
        for deeper, other in changed(kind.item_type, value[0], path) if value else ():
            yield deeper, (other, *value[1:])
    else:
        yield from ((path, other) for other in _others(kind, value))


def _others(kind: inspect.Type, value: Any) -> list[Any]:
    """Values of this type, which has no parts, that differ from `value`."""
    if isinstance(kind, inspect.LiteralType):
        return [other for other in kind.values if other != value]
    if isinstance(kind, inspect.DictType):
        return [{**value, "another": sample(kind.value_type)}]
    if isinstance(kind, inspect.BoolType):
        return [not value]
    if isinstance(kind, inspect.StrType):
        return [f"{value}x"]
    return [value + timedelta(seconds=1)] if isinstance(kind, inspect.DateTimeType) else [value + 1]


def _of_union(kind: inspect.UnionType, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if value is None:
        yield path, sample(kind)
        return
    for one in kind.types:
        if isinstance(one, inspect.NoneType):
            yield path, None
        elif not isinstance(one, inspect.StructType) or isinstance(value, one.cls):
            yield from changed(one, value, path)


def parts(event: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """See `changed`."""
    return changed(inspect.type_info(type(event)), event)
