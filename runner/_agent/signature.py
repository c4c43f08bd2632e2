"""What a function takes: a schema to show to the model, and an adapter for each parameter.

The schema shows the defaults, because they are what runs when an argument is left out. So a default that JSON can't
hold, or that is not of its parameter's type, is refused when the tool is declared.
"""

import copy
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from runner._agent import adapters
from runner._agent.adapters import Adapter, Invalid, Unsupported
from runner.errors import BadTool

_INSTEAD = {
    inspect.Parameter.POSITIONAL_ONLY: "arguments are given by name, and {0} is positional only: remove the `/`",
    inspect.Parameter.VAR_POSITIONAL: "`*{0}` has no name for each argument: write `{0}: list[...]`",
    inspect.Parameter.VAR_KEYWORD: "`**{0}` has no names that a model could know: write `{0}: dict[str, ...]`",
}


class Parameter(msgspec.Struct, frozen=True):
    """One argument. `default` is what JSON holds; `takes_null`: null is one of its values.

    `plain`: a type of which JSON's own values are the values, if the hint is nothing more than one.
    """

    adapter: Adapter
    required: bool
    default: Any
    takes_null: bool
    plain: type | None


class Signature(msgspec.Struct, frozen=True, dict=True):
    """What a function takes: its parameters, their JSON schema, and the name of its `Call` parameter.

    `given`: the schema came from a service, and the function reads its arguments from its `Call`. `inputs` is the type
    of a run's inputs that its `Call` names. `known` are arguments that were read already, by their text.
    """

    parameters: Mapping[str, Parameter] = {}
    schema: dict[str, Any] = {}
    call: str | None = None
    given: bool = False
    inputs: Any = object
    known: dict[str, Any] = {}

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether all that its arguments may be are values that nobody can change."""
        return not self.given and all(one.plain is not None for one in self.parameters.values())


def signature(name: str, function: Callable[..., object], call_type: type) -> Signature:
    """What a function takes, from its type hints and docstring.

    A parameter annotated with `call_type` is given by the runner and no part of the schema. Raises `BadTool` for a
    signature that named JSON arguments can't fill.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # resolving a hint runs the user's own names and attributes
        raise BadTool(name, f"a type hint can't be resolved ({error})") from error
    call, inputs = None, object
    found: dict[str, Parameter] = {}
    for parameter in _parameters(name, function):
        hint = hints.get(parameter.name, Any)
        if call_type in (hint, get_origin(hint)):
            call, inputs = parameter.name, reads(hint)
        elif any(call_type in (part, get_origin(part)) for part in get_args(hint)):
            raise BadTool(name, f"parameter {parameter.name} is given always: write `{parameter.name}: runner.Call`")
        else:
            try:
                found[parameter.name] = _parameter(parameter, hint)
            except Unsupported as why:
                raise BadTool(name, f"parameter {parameter.name}: {why}") from None
    return Signature(found, _schema(found, inspect.getdoc(function) or ""), call, inputs=inputs)


def reads(hint: Any) -> Any:
    """The type of inputs that `Call[Inputs, Resources]` names; `object` for a bare `Call`."""
    return (get_args(hint) or (object,))[0]


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    adapter = adapters.adapter(hint)
    try:
        adapter.load(None)
        takes_null = True
    except Invalid:
        takes_null = False
    exact = hint if hint in (str, int, float, bool) else None
    if parameter.default is parameter.empty:
        return Parameter(adapter, required=True, default=None, takes_null=takes_null, plain=exact)
    try:
        plain = json.loads(json.dumps(adapter.dump(parameter.default), allow_nan=False))
        adapter.load(plain)
    except (Invalid, TypeError, ValueError, NotImplementedError, RecursionError) as error:
        why = error.problems[0].text if isinstance(error, Invalid) else str(error)
        raise Unsupported(f"its default, {parameter.default!r}, is no JSON value of its type ({why})") from None
    return Parameter(adapter, required=False, default=plain, takes_null=takes_null, plain=exact)


def _parameters(name: str, function: Callable[..., object]) -> list[inspect.Parameter]:
    """The parameters that are given by name. Raises `BadTool` for one that can't be."""
    try:
        found = list(inspect.signature(function).parameters.values())[unbound(function) :]
    except ValueError as error:
        raise BadTool(name, f"Python does not know its parameters ({error}): write a function that calls it") from None
    for parameter in found:
        if parameter.kind in _INSTEAD:
            raise BadTool(name, _INSTEAD[parameter.kind].format(parameter.name))
    return found


def unbound(function: Callable[..., object]) -> bool:
    """Whether it is a method without its object: its first parameter is an untyped `self` or `cls`."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except ValueError:
        return False
    return first is not None and first.name in ("self", "cls") and first.annotation is first.empty


def given(name: str, function: Callable[..., object], call_type: type, schema: dict[str, Any]) -> Signature:
    """The signature of a function that reads its arguments from its `Call`, because a JSON schema describes them.

    Raises `BadTool` when the function takes anything else, or the schema is not one of an object.
    """
    parameters = signature(name, function, call_type)
    if parameters.call is None or parameters.parameters:
        raise BadTool(name, "a tool with a schema takes one parameter, a `runner.Call`, and reads `call.arguments`")
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise BadTool(name, "its schema does not describe an object")
    shown = {"properties": {}, **{key: value for key, value in schema.items() if key != "description"}}
    return Signature({}, copy.deepcopy(shown), parameters.call, given=True, inputs=parameters.inputs)


def _schema(parameters: Mapping[str, Parameter], doc: str) -> dict[str, Any]:
    """The JSON schema of the arguments, each described by its line in the docstring's `Args:` where there is one."""
    shown, defs = adapters.schemas({name: one.adapter for name, one in parameters.items()})
    said = dict(re.findall(r"^[ \t]+(\w+)(?: \([^)]*\))?:[ \t]+(.+)$", doc, re.MULTILINE))
    for argument, part in shown.items():
        if argument in said:
            part.setdefault("description", said[argument].strip())
        if not parameters[argument].required:
            part["default"] = parameters[argument].default
    schema = {
        "type": "object",
        "properties": shown,
        "required": [argument for argument, one in parameters.items() if one.required],
        "additionalProperties": False,
    }
    return schema | {"$defs": defs} if defs else schema


def description(function: Callable[..., object]) -> str:
    """A docstring as the model reads it: without its `Args:` section, which the schema repeats."""
    doc = inspect.getdoc(function) or ""
    return re.split(r"^(?:Args|Arguments|Returns|Raises):[ \t]*$", doc, maxsplit=1, flags=re.MULTILINE)[0].strip()
