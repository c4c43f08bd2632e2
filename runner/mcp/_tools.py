"""A server's tools: what a user says of them, what a server may list, and what a model may send to it.

A server's annotations are hints from a stranger, as the protocol itself says. So they count only when the user trusts
that server, and any other tool is `non_idempotent`.

What is listed goes to the model with every request and is shown to people, and a server may be hostile: so names must
be ones that a person can read and tell apart, and schemas are of a bounded size.

Arguments are checked against the schema before any attempt. The server checks them too; this check saves an attempt
and tells the model what is wrong and where. It never refuses what the schema allows, so a schema that can't be followed
allows everything: an invalid one, a reference that leads out of it, one that is too deep. Patterns are never applied,
because an expression of a stranger's may take for ever.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it ships no types
import mcp
import referencing
from pydantic import TypeAdapter, ValidationError
from referencing.exceptions import Unresolvable

from runner import BadTool

_LISTED: TypeAdapter[list[mcp.Tool]] = TypeAdapter(list[mcp.Tool])
MOST_NAME = 256
MOST_TEXT = 256 << 10
"""Characters of JSON that a schema and its description may take together."""
MOST_DEPTH = 64
_SHOWN = 40


def model_name(name: str) -> str:
    """The name by which a model knows a tool: providers take 1 to 64 of a-z, A-Z, 0-9, _ and -, and servers any text.

    Another name is cut and ends in eight digits of its digest, so it stays the same and no two become one.
    """
    if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{re.sub('[^a-zA-Z0-9_-]', '_', name)[:55]}_{digest[:8]}"


Terms = Mapping[str, Any]
"""How a server's tool is declared: the options of `runner.tool`, with `lookup`, `visible_within` and `refused`."""
Trust = str | Terms | Callable[[mcp.Tool], str | Terms]
"""What is said about a tool: its effect alone, its options, or a function of what the server lists."""


def hints(tool: mcp.Tool) -> dict[str, Any]:
    """Believe a tool's annotations: for servers that the user trusts.

    `readOnlyHint` means `reads`, `idempotentHint` `idempotent`, anything else `non_idempotent`, which needs a yes
    unless `destructiveHint` is false. Unset hints count as the protocol says: not read-only, destructive, not
    idempotent.
    """
    said = tool.annotations
    if said is not None and said.read_only_hint:
        return {"effect": "reads"}
    effect = "idempotent" if said is not None and said.idempotent_hint else "non_idempotent"
    return {"effect": effect, "approval": said is None or said.destructive_hint is not False}


def of(tool: mcp.Tool, trust: Trust) -> Terms:
    """The options of a listed tool. A mapping names tools; what it does not name is `non_idempotent`."""
    said = trust.get(tool.name, {}) if isinstance(trust, Mapping) else trust
    if callable(said):
        said = said(tool)
    return said if isinstance(said, Mapping) else {"effect": said}


def check_trust(listed: Collection[str], trust: Trust) -> None:
    """Raise `BadTool` when `trust` names a tool that the server does not list: a typing error must not go unseen."""
    for name in trust if isinstance(trust, Mapping) else ():
        if name not in listed:
            raise BadTool(name, f"the server lists no such tool (it lists {', '.join(sorted(listed)) or 'none'})")


def check_codes(tool: str, refused: Any) -> None:
    """Raise `BadTool` for what are no codes of protocol errors."""
    several = isinstance(refused, Collection) and not isinstance(refused, str | bytes)
    if not (several and all(isinstance(code, int) for code in refused)):
        raise BadTool(tool, f"refused is {refused!r}, not codes of errors, such as [-32602]")


def keep(listing: str | Path | None, listed: Sequence[mcp.Tool]) -> None:
    """Write what a server lists into its file, if it has one and that says something else."""
    text = _LISTED.dump_json(list(listed), by_alias=True, exclude_none=True)
    file = Path(listing or "")
    if listing is not None and not (file.exists() and file.read_bytes() == text):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as place:
            made = Path(place, file.name)
            made.touch(0o600)
            made.write_bytes(text)
            made.replace(file)


def kept(listing: str | Path | None) -> list[mcp.Tool] | None:
    """What its file says that a server lists, or None."""
    try:
        return _LISTED.validate_json(Path(listing).read_bytes()) if listing is not None else None
    except (OSError, ValidationError):
        return None


def check(tool: mcp.Tool, listed: Sequence[mcp.Tool]) -> None:
    """Raise `BadTool` for a listed tool that can't be used."""
    problem = _name(tool.name, [other.name for other in listed]) or _schema(tool)
    if problem:
        raise BadTool(ascii(tool.name[:_SHOWN]), problem)


def _name(name: str, names: list[str]) -> str:
    if not name.strip():
        return "its name is empty"
    if len(name) > MOST_NAME:
        return f"its name has {len(name)} characters, more than {MOST_NAME}"
    if not name.isprintable():
        return "its name holds characters that nobody sees"
    return "its name is given to two tools" if names.count(name) > 1 else ""


def _schema(tool: mcp.Tool) -> str:
    depth = 0
    level: list[Any] = [tool.input_schema]
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            return f"its schema is nested deeper than {MOST_DEPTH}"
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        ]
    texts = len(json.dumps(tool.input_schema)) + len(tool.description or tool.title or "")
    return f"its schema and description take {texts} characters, more than {MOST_TEXT}" if texts > MOST_TEXT else ""


MOST_SHOWN = 300

_Standard: Any = jsonschema.Draft202012Validator


def _additional(validator: Any, allowed: object, instance: object, schema: Mapping[str, Any]) -> Iterator[Any]:
    """`additionalProperties`, where no pattern decides which properties are additional."""
    if "patternProperties" not in schema:
        yield from _Standard.VALIDATORS["additionalProperties"](validator, allowed, instance, schema)


_OFF = dict.fromkeys(("format", "pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"))
_Validator: Any = jsonschema.validators.extend(_Standard, _OFF | {"additionalProperties": _additional})


def problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """The first thing that `schema` forbids about `arguments`, as a sentence with its place, or None."""
    validator = _Validator(schema, registry=referencing.Registry())
    try:
        found = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
    except (jsonschema.SchemaError, Unresolvable, RecursionError, TypeError, ValueError, AttributeError):
        return None
    return None if found is None else f"{found.json_path}: {found.message[:MOST_SHOWN]}"
