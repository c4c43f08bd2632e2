"""Parsed JSON and the values that it becomes: places in it, and what the reader of a type passes over.

msgspec passes over keys that a schema does not name, so a typo in an optional field would be lost. It leaves a
dataclass's default to the class and then does not write it down: a person would approve an order without its amount,
and the same order with the amount written out would be another intent. A set's own order differs from process to
process, and an intent must not.
"""

import dataclasses
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

Path = tuple[str | int, ...]

NOTHING: Any = object()
"""What is found at a place that does not exist."""


def at(whole: Any, path: Path) -> Any:
    """What is at a place, or `NOTHING`."""
    for step in path:
        inside = isinstance(whole, list) and isinstance(step, int) and step < len(whole)
        if not inside and not (isinstance(whole, dict) and step in whole):
            return NOTHING
        whole = whole[step]
    return whole


def put(whole: Any, path: Path, new: Any) -> Any:
    """A copy with `new` at a place; `NOTHING` removes what is there."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    inner = put(whole[step], rest, new)
    if isinstance(whole, list):
        return [inner if index == step else member for index, member in enumerate(whole)]
    changed = {key: inner if key == step else member for key, member in whole.items()}
    return {key: member for key, member in changed.items() if member is not NOTHING}


def place(path: Path) -> str:
    """The place as a model reads it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def shown(value: Any) -> str:
    """What was sent, for the model."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 (a message, not a limit)


Found = tuple[Path, str]


def unknown_keys(schema: Any, value: Any, defs: Mapping[str, Any], path: Path = ()) -> Iterator[Found]:
    """The places of the keys, each with a sentence."""
    while "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from unknown_keys(schema.get("items") or {}, member, defs, (*path, index))
    elif isinstance(value, dict) and "properties" in schema:
        yield from _members(schema, value, defs, path)
    elif isinstance(value, dict):
        rest = schema.get("additionalProperties")
        for name, member in value.items() if isinstance(rest, dict) else ():
            yield from unknown_keys(rest, member, defs, (*path, name))
        branches = [list(unknown_keys(one, value, defs, path)) for one in schema.get("anyOf", ()) if _object(one)]
        yield from min(branches, key=len, default=[])


def _members(schema: Any, value: dict[str, Any], defs: Mapping[str, Any], path: Path) -> Iterator[Found]:
    for name, member in value.items():
        if name in schema["properties"]:
            yield from unknown_keys(schema["properties"][name], member, defs, (*path, name))
        elif not schema.get("additionalProperties"):
            yield (*path, name), f"there is no such field{meant(name, schema['properties'])}"


def _object(schema: Mapping[str, Any]) -> bool:
    return "$ref" in schema or "anyOf" in schema or schema.get("type") == "object"


def meant(name: str, known: Iterable[str]) -> str:
    """The near name, or all that there are."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean `{near[0]}`?)" if near else f" (there are {', '.join(f'`{n}`' for n in known) or 'none'})"


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
        rest += _held(one)
    return value


def _held(value: object) -> Iterable[object]:
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


def sorted_sets(value: Any, plain: Any) -> Any:
    """`plain`, which is `value` as JSON, with the members of every set in it sorted."""
    if isinstance(plain, dict):
        parts = _sources(value, plain)
        return {name: sorted_sets(parts.get(name), part) for name, part in plain.items()}
    if not isinstance(plain, list) or not isinstance(value, set | frozenset | list | tuple) or len(value) != len(plain):
        return plain
    members = [sorted_sets(one, part) for one, part in zip(value, plain, strict=True)]
    return (
        sorted(members, key=lambda plain: json.dumps(plain, sort_keys=True))
        if isinstance(value, set | frozenset)
        else members
    )


def _sources(value: Any, plain: dict[str, Any]) -> dict[str, Any]:
    """What became each member of `plain`: the values of a dictionary, or the fields of an object by their aliases."""
    if isinstance(value, dict):
        return dict(zip(plain, value.values(), strict=False))
    if isinstance(value, msgspec.Struct):
        encoded = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {name: getattr(value, field) for name, field in encoded}
    fields = getattr(type(value), "__pydantic_fields__", {})
    aliases = {name: one.serialization_alias or one.alias or name for name, one in fields.items()}
    return {aliases.get(name, name): part for name, part in getattr(value, "__dict__", {}).items()}
