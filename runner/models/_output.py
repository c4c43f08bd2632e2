"""A JSON schema as a vendor holds its model to it.

What a vendor can't check stands in the description instead: our own validation judges every answer. Objects are closed
and name all their fields as required; a field with a default may be null, which our decoder reads as the default. A
dictionary with keys of the model's choice, a tuple or a value of any type can't be expressed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_BOUNDS = frozenset(
    {"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
)
_STRUCTURE = frozenset({
    "type", "enum", "const", "anyOf", "oneOf", "$ref", "properties", "required", "additionalProperties", "items",
    "description", "default", "title",
})  # fmt: skip
_COMBINED = frozenset({"allOf", "not", "patternProperties", "prefixItems"})
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})
_DEEPEST = 10


@dataclass(frozen=True)
class Dialect:
    """What one vendor checks beyond the common part (`keywords`), and whether a type may contain itself."""

    keywords: frozenset[str]
    recursive: bool


OPENAI = Dialect(_BOUNDS | {"pattern"}, recursive=True)
ANTHROPIC = Dialect(frozenset(), recursive=False)


class _Inexpressible(Exception):
    """The vendor has no words for it."""


def expressed(schema: Mapping[str, Any], dialect: Dialect) -> dict[str, Any] | None:
    """The schema of an object as it is sent, or None when it can't be."""
    made = _Made(schema.get("$defs", {}), dialect)
    try:
        whole = made.node({key: part for key, part in schema.items() if key != "$defs"}, 1)
    except _Inexpressible:
        return None
    return {**whole, "$defs": made.used} if made.used else whole


@dataclass
class _Made:
    """One schema in the making; `used` are the definitions that it refers to, `open` those that are being made."""

    defs: Mapping[str, Any]
    dialect: Dialect
    used: dict[str, Any] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def node(self, one: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > _DEEPEST or _COMBINED & one.keys():
            raise _Inexpressible
        if "$ref" in one:
            return self._reference(one["$ref"].rsplit("/", 1)[1], depth)
        made = self._kind(one, depth)
        notes = [one["description"]] if "description" in one else []
        for key, value in one.items():
            if key in self.dialect.keywords or (key == "format" and value in _FORMATS):
                made[key] = value
            elif key not in _STRUCTURE:
                notes.append(f"{key}: {json.dumps(value)}")
        return {**made, "description": "; ".join(notes)} if notes else made

    def _kind(self, one: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kind, branches = one.get("type"), one.get("anyOf") or one.get("oneOf")
        if branches:
            return {"anyOf": [self.node(branch, depth) for branch in branches]}
        if "enum" in one or "const" in one:
            return {"enum": list(one.get("enum", [one.get("const")]))}
        if kind == "object":
            return self._object(one, depth)
        if kind == "array" and one.get("items"):
            return {"type": "array", "items": self.node(one["items"], depth + 1)}
        if kind not in _SCALARS:
            raise _Inexpressible
        return {"type": kind}

    def _object(self, one: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if "properties" not in one or isinstance(one.get("additionalProperties"), dict):
            raise _Inexpressible
        required = one.get("required", ())
        shown = {
            name: self.node(part, depth + 1) if name in required else _optional(self.node(part, depth + 1), part)
            for name, part in one["properties"].items()
        }
        return {"type": "object", "properties": shown, "required": list(shown), "additionalProperties": False}

    def _reference(self, name: str, depth: int) -> dict[str, Any]:
        if name in self.open and not self.dialect.recursive:
            raise _Inexpressible
        if name not in self.open and name not in self.used:
            self.open.append(name)
            self.used[name] = self.node(self.defs[name], depth)
            self.open.pop()
        return {"$ref": f"#/$defs/{name}"}


def _optional(made: dict[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """A field that may be left out: null stands for its default."""
    if any(branch.get("type") == "null" for branch in made.get("anyOf", ())):
        return made
    default = part.get("default")
    said = f"null means {json.dumps(default)}" if default is not None else "null when there is none"
    inner = {key: value for key, value in made.items() if key != "description"}
    notes = [*([made["description"]] if "description" in made else []), said]
    return {"anyOf": [inner, {"type": "null"}], "description": "; ".join(notes)}
