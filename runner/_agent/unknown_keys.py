"""Keys that a schema does not name: msgspec passes over them, and a typo in an optional field would be lost."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runner._agent.places import Path

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
