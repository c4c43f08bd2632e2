"""Arguments against a JSON schema that a service gave, as far as it can be said without doubt.

The service checks its own schema; this check spares it what can't be right and gives the model a sentence instead of an
attempt. So it never refuses what the schema allows: it knows `type`, `enum`, `const`, `required`, `properties`,
`additionalProperties` and `items`, and leaves every other keyword, `$ref` and the combinations among them, to the
service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MOST_NAMES = 5


def _whole(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


_IS: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": _whole,
}


def problem(schema: object, value: object) -> str | None:
    """The first thing about `value` that `schema` certainly forbids, as a sentence with its place, or None."""
    return next(_problems(schema, value, "$"), None)


def _problems(schema: object, value: object, place: str) -> Iterator[str]:
    if schema is False:
        yield f"{place} is not allowed"
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type")
    known = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if known and all(kind in _IS for kind in known) and not any(_IS[kind](value) for kind in known):
        yield f"{place} must be {' or '.join(known)}"
    allowed = schema.get("enum")
    if isinstance(allowed, list) and not any(_equal(value, one) for one in allowed):
        yield f"{place} must be one of {_some(allowed)}"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"{place} must be {schema['const']!r}"
    if isinstance(value, dict):
        yield from _members(schema, value, place)
    if isinstance(value, list) and "prefixItems" not in schema:
        for index, item in enumerate(value):
            yield from _problems(schema.get("items"), item, f"{place}[{index}]")


def _members(schema: Mapping[str, Any], value: Mapping[str, Any], place: str) -> Iterator[str]:
    named = schema.get("properties")
    properties = named if isinstance(named, dict) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield f"{place} has no {name!r}, which is required"
    for name, member in value.items():
        if name in properties:
            yield from _problems(properties[name], member, f"{place}.{name}")
        elif "additionalProperties" in schema and "patternProperties" not in schema:
            rest = schema["additionalProperties"]
            if rest is False:
                yield f"{place} takes no {name!r} (it takes {_some(list(properties)) or 'nothing'})"
            yield from _problems(None if rest is False else rest, member, f"{place}.{name}")


def _equal(one: object, other: object) -> bool:
    """Whether JSON calls them equal: 1 and 1.0 are, 1 and true are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _some(names: list[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return f"{shown}, ..." if len(names) > MOST_NAMES else shown
