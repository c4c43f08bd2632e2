"""A call's arguments: text from the model, prepared once as the values that a tool gets, or as the reason why not.

What is decided is what runs: approvals, questions, intents, the fork guard, lookups and the tool's body all use one
spelling of the arguments, as bound, defaults included. It is logged in the question and in the first marker, and every
attempt runs with it, whatever the defaults are by then. A spelling that would be read as another value, because a
validator changes what it takes or a serializer writes what no validator takes, is refused: the body reads it again.

The model's own text survives as it came. What can't be used is listed for the model, all of it at once with its place,
and no attempt is made. A number that its parameter's type would change is refused: two different numbers never become
one intent.
"""

import copy
import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from operator import is_
from typing import Any

import msgspec

from runner._agent import json_text
from runner._agent.adapters import ByMsgspec, Invalid, Problem
from runner._agent.json_text import InvalidArguments, parse
from runner._agent.json_values import NOTHING, Path, at, meant, place, shown
from runner._agent.signature import Parameter, Signature
from runner._agent.typed import repaired

AGAIN = "Call the tool again with all of these put right"  # said to the model
MOST_PROBLEMS = 10
KEPT, KEPT_SIZE = 256, 4096
"""How many calls' arguments are kept for one function, and how long they may be."""
_text = json.JSONEncoder(ensure_ascii=False).encode

Validate = Callable[[dict[str, Any]], str | None]
"""What is wrong with parsed arguments, as a sentence, or None."""


class Arguments(msgspec.Struct, frozen=True):
    """A call's arguments, prepared for a tool.

    `text` is their one spelling, `plain` the same as a JSON object, `values` what a function is called with. `problem`
    says why they can't be used, None when they can; `text` is then what was written.
    """

    text: str
    plain: dict[str, Any] = {}
    values: dict[str, Any] | None = None
    problem: str | None = None

    @property
    def reasons(self) -> str:
        """The problem in words for a person: without what the model is told to do."""
        return (self.problem or "").removesuffix(f"\n{AGAIN}")


def bind(parameters: Mapping[str, Parameter], written: dict[str, Any]) -> dict[str, Any]:
    """Parsed arguments as the values a function is called with. Raises `InvalidArguments` with every problem."""
    problems: list[Problem] = []
    if not written.keys() <= parameters.keys():
        unknown = [name for name in written if name not in parameters]
        problems = [Problem((name,), f"there is no such argument{meant(name, parameters)}") for name in unknown]
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        sent = written.get(name, NOTHING)
        if type(sent) is parameter.plain:
            values[name] = sent
        elif sent is NOTHING and parameter.required:
            problems.append(Problem((name,), "it is required and missing"))
        elif sent is NOTHING or (sent is None and not parameter.required and not parameter.takes_null):
            values[name] = parameter.adapter.load(copy.deepcopy(parameter.default))
        else:
            try:
                values[name] = repaired(parameter.adapter, sent)
            except Invalid as invalid:
                problems += [Problem((name, *p.path), _with_sent(p.text, sent, p.path)) for p in invalid.problems]
    if problems:
        raise InvalidArguments(_listed(problems))
    return values


def _with_sent(text: str, sent: Any, path: Path) -> str:
    there = at(sent, path)
    return text if there is NOTHING else f"{text}; you sent {shown(there)}"


def _listed(problems: list[Problem]) -> str:
    lines = [f"- {place(one.path)}: {one.text}" for one in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"- and {len(problems) - MOST_PROBLEMS} more")
    return "\n".join(["its arguments do not fit", *lines, AGAIN])


def prepare(raw: str, signature: Signature | None = None, validate: Validate | None = None) -> Arguments:
    """Raw arguments for a tool of this signature; without one they are only read.

    `validate` checks what the signature says nothing about: a schema that a service gave. A call's arguments are read
    when it is decided on, and again when it runs: those that can't be changed are kept in between.
    """
    if signature is None or validate is not None or not signature.is_plain:
        return _prepared(raw, signature, validate)
    found: Arguments | None = signature.known.get(raw)
    if found is None:
        found = _prepared(raw, signature, None)
        if found.problem is None and len(found.text) <= KEPT_SIZE:
            if len(signature.known) >= KEPT:
                signature.known.clear()
            signature.known[found.text] = found
    return found


def _prepared(raw: str, signature: Signature | None, validate: Validate | None) -> Arguments:
    try:
        written = parse(raw)
        if signature is None:
            plain = values = written
        elif signature.given:
            plain = values = _with_defaults(written, signature.schema["properties"])
        else:
            values, plain = _bound(signature, written)
            if plain is not written and _text(plain) not in (raw, _text(written)):  # read again, the same is the same
                values, plain = _read_again(signature, plain)
    except InvalidArguments as invalid:
        return Arguments(raw, problem=str(invalid))
    problem = None if validate is None else validate(plain)
    return Arguments(_text(plain), plain, values, problem)


def _bound(signature: Signature, written: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that a function is called with, and the same as JSON: what was written, if it is that already."""
    values = bind(signature.parameters, written)
    if signature.is_plain and [*values] == [*written] and all(map(is_, values.values(), written.values())):
        return values, written
    dumped = dict(values)
    others = {name: value for name, value in values.items() if type(value) is not signature.parameters[name].plain}
    for name, value in others.items():
        try:
            dumped[name] = signature.parameters[name].adapter.dump(value)
        except Exception as error:  # noqa: BLE001 (a serializer is the user's code)
            raise InvalidArguments(f"{name}: its value can't be written as JSON ({error})") from None
    for name, value in others.items():
        if isinstance(signature.parameters[name].adapter, ByMsgspec):  # pydantic's models may pass over keys
            _check_keys(written.get(name), dumped[name], value, name)
    for name, value in dumped.items():
        dumped[name] = _as_written(written.get(name), value, name)
    return values, dumped


def _check_keys(written: Any, bound: Any, value: Any, where: str) -> None:
    """Raise where two keys of a dictionary were read as one, or a key as another number. Sets have another order."""
    if isinstance(written, str) and isinstance(bound, dict | list):
        written = _unquoted(written)
    if isinstance(written, dict) and isinstance(bound, dict):
        gone = [key for key in written if key not in bound]
        if len(bound) < len(written) or not all(map(_is_held, gone)):
            raise InvalidArguments(f"{', '.join(gone)}: not keys of `{where}` that can be told apart and held exactly")
        for key in written.keys() & bound.keys():
            inner = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
            _check_keys(written[key], bound[key], inner, f"{where}.{key}")
    elif isinstance(written, list) and isinstance(bound, list) and isinstance(value, list | tuple):
        for index, (one, other, inner) in enumerate(zip(written, bound, value, strict=False)):
            _check_keys(one, other, inner, f"{where}[{index}]")


def _read_again(signature: Signature, plain: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """These arguments, written down and read as a body will read them. Raises where that gives another value.

    A default of an inner field may be spelled in another way than its type is, as 0 for 0.0: this is the one to keep.
    """
    try:
        values, again = _bound(signature, parse(_text(plain)))
    except InvalidArguments as invalid:
        raise InvalidArguments(f"their values can't be written as JSON that is read again ({invalid})") from None
    changed = [name for name in plain if again[name] != plain[name]]
    if changed:
        raise InvalidArguments(f"{', '.join(changed)}: the value becomes another one each time it is read")
    return values, again


def _with_defaults(written: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    """What was written, in the order of a schema, with the schema's defaults for what was left out."""
    shown = {name: part["default"] for name, part in properties.items() if isinstance(part, dict) and "default" in part}
    names = [name for name in properties if name in written or name in shown]
    return {name: copy.deepcopy(shown[name]) if name not in written else written[name] for name in [*names, *written]}


def _as_written(written: Any, bound: Any, where: str) -> Any:
    """`bound` with its names in the order in which they were written. Raises where a number became another one."""
    if isinstance(written, str) and isinstance(bound, dict | list):
        written = _unquoted(written)
    if isinstance(written, dict) and isinstance(bound, dict):
        names = [*(name for name in written if name in bound), *(name for name in bound if name not in written)]
        return {name: _as_written(written.get(name), bound[name], f"{where}.{name}") for name in names}
    if isinstance(written, list) and isinstance(bound, list) and len(written) == len(bound):
        pairs = zip(written, bound, strict=True)
        return [_as_written(one, other, f"{where}[{index}]") for index, (one, other) in enumerate(pairs)]
    if isinstance(written, list) and isinstance(bound, list) and bound and isinstance(bound[0], float):
        for one in written:  # a set in which some became one
            _as_written(one, bound[0], where)
    if isinstance(written, int | str) and isinstance(bound, float) and not _is_held(written):
        raise InvalidArguments(f"the number {str(written)[:40]} at `{where}` can't be held exactly")
    return bound


def _unquoted(text: str) -> Any:
    """The list or object that text was taken for."""
    try:
        return json_text.read(text)
    except InvalidArguments:  # a validator of its own took it
        return text


def _is_held(number: int | str) -> bool:
    """Whether a float holds this number, which may be written as text, exactly. So does what is no number."""
    try:
        return Decimal(number) == Decimal(repr(float(number)))
    except OverflowError:
        return False
    except (ValueError, InvalidOperation):
        return True
