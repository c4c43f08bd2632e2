"""A call's arguments: raw text from the model, checked against the tool's signature before any attempt.

The raw string survives as it came (spec row 10). What can't be used gives a sentence that the model can read, and no
attempt is made. Strict where JSON readers differ: a key given twice, NaN, and text behind the object are invalid,
because a person who approves must see the same arguments as the tool gets.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, get_type_hints

import msgspec

from runner.errors import BadTool

MAX_DEPTH = 64

_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATES = re.compile("[\ud800-\udfff]")


class Signature(NamedTuple):
    """What a function takes: a type to validate with, a JSON schema to show, and the name of its `Call` parameter."""

    type: type[msgspec.Struct]
    schema: dict[str, Any]
    call: str | None


class InvalidArguments(Exception):
    """Arguments that can't be used; the text is for the model."""


def signature(name: str, function: Callable[..., object], call_type: type) -> Signature:
    """What a function takes, from its type hints and docstring.

    A parameter annotated with `call_type` is given by the runner and no part of the schema. Raises `BadTool` for a
    signature that named JSON arguments can't fill.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # resolving a hint runs the user's own names and attributes
        raise BadTool(name, f"a type hint can't be resolved ({error})") from error
    call: str | None = None
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadTool(name, f"parameter {parameter.name} can't be given by name")
        hint = hints.get(parameter.name, Any)
        if hint is call_type:
            call = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fresh = functools.partial(copy.deepcopy, parameter.default)
            fields.append((parameter.name, hint, msgspec.field(default_factory=fresh)))
    kind = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    try:
        return Signature(kind, _schema(kind, inspect.getdoc(function) or ""), call)
    except TypeError as error:
        raise BadTool(name, str(error)) from error


def given(name: str, function: Callable[..., object], call_type: type, schema: dict[str, Any]) -> Signature:
    """The signature of a function that reads its arguments from its `Call`, because a JSON schema describes them.

    Raises `BadTool` when the function takes anything else, or the schema is not one of an object.
    """
    parameters = signature(name, function, call_type)
    if parameters.call is None or parameters.type.__struct_fields__:
        raise BadTool(name, "a tool with a schema takes one parameter, a `runner.Call`, and reads `call.arguments`")
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise BadTool(name, "its schema does not describe an object")
    anything = msgspec.defstruct(name, [], kw_only=True)
    shown = {"properties": {}, **{key: value for key, value in schema.items() if key != "description"}}
    return Signature(anything, copy.deepcopy(shown), parameters.call)


def _schema(kind: type[msgspec.Struct], doc: str) -> dict[str, Any]:
    """The JSON schema of the arguments, each described by its line in the docstring's `Args:` where there is one."""
    (whole,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    own = parts.pop(whole["$ref"].rsplit("/", 1)[1]) if "$ref" in whole else whole
    schema: dict[str, Any] = {
        "type": "object",
        "properties": own.get("properties", {}),
        "required": own.get("required", []),
        "additionalProperties": False,
    }
    said = dict(re.findall(r"^[ \t]+(\w+)(?: \([^)]*\))?:[ \t]+(.+)$", doc, re.MULTILINE))
    for field, about in schema["properties"].items():
        if field in said:
            about.setdefault("description", said[field].strip())
    if parts:
        schema["$defs"] = parts
    return schema


def description(function: Callable[..., object]) -> str:
    """A docstring as the model reads it: without its `Args:` section, which the schema repeats."""
    doc = inspect.getdoc(function) or ""
    return re.split(r"^(?:Args|Arguments|Returns|Raises):[ \t]*$", doc, maxsplit=1, flags=re.MULTILINE)[0].strip()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArguments(f"the key {twice!r} is given twice")
    return found


def _constant(word: str) -> Any:
    raise InvalidArguments(f"{word} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def parse(arguments: str) -> dict[str, Any]:
    """Raw arguments as a dictionary. Raises `InvalidArguments` for anything that is not exactly one JSON object."""
    try:
        value = _DECODER.decode(arguments or "{}")
    except RecursionError:
        raise InvalidArguments(f"they are nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        raise InvalidArguments(f"they are not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise InvalidArguments("they are not a JSON object")
    if _depth(value) > MAX_DEPTH:
        raise InvalidArguments(f"they are nested deeper than {MAX_DEPTH}")
    return dict(_storable(value)) if _ESCAPED.search(arguments) else value


def _storable(value: Any) -> Any:
    """`value` with U+FFFD for what UTF-8 can't hold: no tool meets text that it can't send or save."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_storable(member) for member in value]
    if isinstance(value, dict):
        return {_storable(name): _storable(member) for name, member in value.items()}
    return value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [v for x in level for v in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())]
    return depth


def bind(kind: type[msgspec.Struct], arguments: dict[str, Any]) -> dict[str, Any]:
    """Parsed arguments as the values a function is called with. Raises `InvalidArguments`."""
    try:
        value = msgspec.convert(arguments, kind)
    except (msgspec.ValidationError, RecursionError, OverflowError, ValueError) as error:
        raise InvalidArguments(str(error)) from None
    return {name: getattr(value, name) for name in kind.__struct_fields__}
