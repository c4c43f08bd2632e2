"""Types to JSON Schema, to values, and to JSON again: one adapter for each parameter.

msgspec does it, or pydantic where the type, a field of it or a constraint is pydantic's or annotated_types'. Never half
of each: msgspec passes over constraints that are not its own, so a mix is refused. pydantic is imported only for a type
that needs it, so installing it changes no tool.
"""

import dataclasses
import itertools
import json
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from runner._agent.json_values import Path, at, put, sorted_sets, unknown_keys, with_defaults

REF = "#/$defs/{name}"
_THEIRS = ("pydantic", "pydantic_core", "annotated_types")
_PLACED = r"(?s)^(.*) - at (?:`key` in )?`\$(.*)`$"
_STEP = r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]"


_ERRORS = (msgspec.ValidationError, OverflowError, RecursionError, ValueError)


class Unsupported(TypeError):
    """A type that can't be an argument; the text says what to write instead."""


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, and where in the value."""

    path: Path
    text: str


class Invalid(Exception):
    """A value that is none of the type."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


def adapter(hint: Any) -> "Adapter":
    """The adapter of a type. Raises `Unsupported`."""
    theirs, ours = "", ""
    for part, extras in _parts(hint, set()):
        name = getattr(part, "__name__", str(part))
        if hasattr(part, "__pydantic_core_schema__") or hasattr(part, "__get_pydantic_core_schema__"):
            theirs = theirs or name
        if any(_is_pydantic(extra) for extra in extras):
            theirs = theirs or f"a constraint on {name}"
        if any(isinstance(extra, msgspec.Meta) for extra in extras):
            ours = ours or f"msgspec.Meta on {name}"
        if getattr(getattr(part, "__struct_config__", None), "omit_defaults", False):
            raise Unsupported(f"{name} leaves its defaults out, and they must stand in a question: no omit_defaults")
        if hasattr(part, "__struct_fields__") or hasattr(part, "__attrs_attrs__"):
            ours = ours or name
    if theirs and ours:
        raise Unsupported(f"it mixes {theirs} (pydantic) with {ours}, which pydantic does not know: use one of the two")
    return ByPydantic(hint) if theirs else ByMsgspec(hint)


def _is_pydantic(extra: object) -> bool:
    home = type(extra).__module__.partition(".")[0]
    return home in _THEIRS or hasattr(extra, "__get_pydantic_core_schema__")


def _parts(hint: Any, seen: set[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every type that a hint mentions, those of fields included, each with what `Annotated` says about it."""
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        yield base, tuple(extras)
        yield from _parts(base, seen)
        return
    named = getattr(hint, "__supertype__", None) or (not isinstance(hint, type) and getattr(hint, "__value__", None))
    if named:  # NewType, and `type X = ...`
        yield from _parts(named, seen)
        return
    for argument in () if get_origin(hint) is typing.Literal else get_args(hint):
        yield from _parts(argument, seen)
    kind = get_origin(hint) or hint
    if isinstance(kind, type) and kind not in seen:
        seen.add(kind)
        yield kind, ()
        for field in _fields(kind).values():
            yield from _parts(field, seen)


def _fields(kind: type) -> dict[str, Any]:
    has = (
        dataclasses.is_dataclass(kind)
        or is_typeddict(kind)
        or hasattr(kind, "__attrs_attrs__")
        or hasattr(kind, "__struct_fields__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )
    if not has or hasattr(kind, "__pydantic_core_schema__"):
        return {}
    try:
        return get_type_hints(kind, include_extras=True)
    except Exception as error:  # resolving a hint runs the user's own names and attributes
        raise Unsupported(f"a type hint of {kind.__name__} can't be resolved ({error})") from error


def _load_path(kind: type, value: Any) -> Any:
    if not issubclass(kind, pathlib.PurePath):
        raise NotImplementedError
    if not isinstance(value, str):
        raise TypeError("Expected a path, as text")
    return kind(value)


def _dump_path(value: Any) -> Any:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _path_schema(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, pathlib.PurePath):
        return {"type": "string", "format": "path"}
    raise NotImplementedError


class ByMsgspec:
    """Everything else: dataclasses, attrs, TypedDicts, enums, dates, structs, tagged unions, `Meta`, paths."""

    def __init__(self, hint: Any) -> None:
        self.hint: Any = Any if hint is object else hint
        try:
            (self.schema,), self.defs = msgspec.json.schema_components(
                [self.hint], ref_template=REF, schema_hook=_path_schema
            )
        except TypeError as error:
            raise Unsupported(_words(str(error))) from None

    def load(self, value: Any) -> Any:
        try:
            loaded = self._convert(value)
        except _ERRORS as error:
            raise Invalid([self._problem(value, str(error))]) from None
        except Exception as error:  # noqa: BLE001 (`__post_init__` is the user's code)
            raise Invalid([Problem((), f"{type(error).__name__}: {error}")]) from None
        unknown = [Problem(path, text) for path, text in unknown_keys(self.schema, value, self.defs)]
        if unknown:
            raise Invalid(unknown)
        return loaded

    def _convert(self, value: Any) -> Any:
        return with_defaults(msgspec.convert(value, self.hint, str_keys=True, dec_hook=_load_path))

    def _problem(self, value: Any, said: str) -> Problem:
        """An error of msgspec's with its place. msgspec writes `...` for the name of a dictionary's member."""
        placed = re.match(_PLACED, said)
        if placed is None:
            return Problem((), said)
        path: list[str | int] = []
        for field, member in re.findall(_STEP, placed[2]):
            inside = at(value, tuple(path))
            if member == "..." and isinstance(inside, dict):
                path.append(next((key for key in inside if self._fails(value, path, key)), member))
            else:
                path.append(int(member) if member.isdigit() else field or member)
        return Problem(tuple(path), placed[1])

    def _fails(self, value: Any, path: list[str | int], key: str) -> bool:
        outer = tuple(path)
        try:
            self._convert(put(value, outer, {key: at(value, (*outer, key))}))
        except _ERRORS:
            return True
        return False

    def dump(self, value: Any) -> Any:
        try:
            plain = msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_dump_path)
        except TypeError:  # a set whose members have no order of their own
            plain = sorted_sets(value, msgspec.to_builtins(value, str_keys=True, enc_hook=_dump_path))
        return json.loads(json.dumps(plain, allow_nan=False)) if isinstance(plain, list | dict | tuple | set) else plain


def _words(text: str) -> str:
    if not text.startswith("Generating JSON schema for custom types"):
        return text.replace("\n", " ")
    kind = text.rsplit("type ", 1)[-1].split(" is not", maxsplit=1)[0]
    return f"{kind} has no JSON form: use a dataclass, a TypedDict, a msgspec.Struct or a pydantic model"


class ByPydantic:
    """pydantic's models and dataclasses, and its constraints on any type it knows. They follow their own config."""

    def __init__(self, hint: Any) -> None:
        try:
            import pydantic  # noqa: PLC0415 (only for a type that needs it)
        except ModuleNotFoundError:
            raise Unsupported("its constraint is checked by pydantic, which is not installed") from None
        self.errors = pydantic.ValidationError
        try:
            self.adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
            self.schema = self.adapter.json_schema(ref_template="#/$defs/{model}")
        except pydantic.errors.PydanticUserError as error:
            raise Unsupported(str(error).split("\n", maxsplit=1)[0]) from error
        if _leaves_out(self.adapter.core_schema):
            raise Unsupported("a field is left out where it is written (exclude=), so a body would never see it")
        self.defs: dict[str, Any] = self.schema.pop("$defs", {})

    def load(self, value: Any) -> Any:
        try:
            return self.adapter.validate_json(msgspec.json.encode(value))
        except self.errors as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise Invalid([Problem(_place(value, one["loc"], one["type"]), one["msg"]) for one in found]) from None
        except Exception as error:  # noqa: BLE001 (a validator is the user's code)
            raise Invalid([Problem((), f"{type(error).__name__}: {error}")]) from None

    def dump(self, value: Any) -> Any:
        return sorted_sets(value, self.adapter.dump_python(value, mode="json", by_alias=True, round_trip=True))


Adapter: TypeAlias = ByMsgspec | ByPydantic
"""One type. `schema` refers to `defs`; `load` makes a value of parsed JSON, or raises `Invalid`, `dump` the reverse."""


def _leaves_out(schema: Any) -> bool:
    """Whether pydantic's own schema has a field that is not written."""
    if isinstance(schema, Mapping):
        excludes = schema.get("serialization_exclude") or "serialization_exclude_if" in schema
        return bool(excludes) or any(map(_leaves_out, schema.values()))
    return isinstance(schema, list | tuple) and any(map(_leaves_out, schema))


def _place(value: Any, steps: tuple[str | int, ...], kind: str) -> Path:
    """A place in the JSON; pydantic puts the names of union members between the keys."""
    path: list[str | int] = []
    for number, step in enumerate(steps):
        inside = isinstance(value, dict) and step in value
        if inside or (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            value = value[step]
        elif kind != "missing" or number < len(steps) - 1:
            continue
        path.append(step)
    return tuple(path)


def whole(one: Adapter) -> dict[str, Any]:
    """The schema of one type, with the definitions that it refers to."""
    return {**one.schema, "$defs": one.defs} if one.defs else one.schema


def schemas(adapters: Mapping[str, Adapter]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each, and the definitions that they share; two that differ get two names."""
    shown: dict[str, dict[str, Any]] = {}
    defs: dict[str, Any] = {}
    for name, one in adapters.items():
        names = {old: _free(old, part, defs) for old, part in one.defs.items()}
        defs |= {names[old]: _renamed(part, names) for old, part in one.defs.items()}
        shown[name] = _renamed(one.schema, names)
    return shown, defs


def _free(name: str, part: Any, defs: Mapping[str, Any]) -> str:
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if defs.get(one, part) == part)


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """A schema whose references have these names."""
    if isinstance(schema, dict):
        return {
            key: f"#/$defs/{names[value.removeprefix('#/$defs/')]}" if key == "$ref" else _renamed(value, names)
            for key, value in schema.items()
        }
    return [_renamed(part, names) for part in schema] if isinstance(schema, list) else schema
