"""Checks arguments against the JSON Schema that a server lists for its tool, before any attempt.

The server checks them too. This check saves an attempt and tells the model what is wrong and where. It never refuses
what the schema allows, so a schema that can't be followed allows everything: an invalid one, a reference that leads out
of it, one that is too deep. Patterns are left to the server, because an expression of a stranger's may take for ever.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it ships no types
import referencing
from referencing.exceptions import Unresolvable

MOST_TEXT = 300

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
    return None if found is None else f"{found.json_path}: {found.message[:MOST_TEXT]}"
