"""The members of a set in one order: a set's own differs from process to process, and an intent must not."""

import json
from typing import Any

import msgspec


def sorted_sets(value: Any, plain: Any) -> Any:
    """`plain`, which is `value` as JSON, with the members of every set in it sorted."""
    if isinstance(plain, dict):
        parts = _parts(value, plain)
        return {name: sorted_sets(parts.get(name), part) for name, part in plain.items()}
    if not isinstance(plain, list) or not isinstance(value, set | frozenset | list | tuple) or len(value) != len(plain):
        return plain
    members = [sorted_sets(one, part) for one, part in zip(value, plain, strict=True)]
    return sorted(members, key=_canonical) if isinstance(value, set | frozenset) else members


def _canonical(plain: Any) -> str:
    return json.dumps(plain, sort_keys=True)


def _parts(value: Any, plain: dict[str, Any]) -> dict[str, Any]:
    """What became each member of `plain`: the values of a dictionary, or the fields of an object by their aliases."""
    if isinstance(value, dict):
        return dict(zip(plain, value.values(), strict=False))
    if isinstance(value, msgspec.Struct):
        encoded = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {name: getattr(value, field) for name, field in encoded}
    fields = getattr(type(value), "__pydantic_fields__", {})
    aliases = {name: one.serialization_alias or one.alias or name for name, one in fields.items()}
    return {aliases.get(name, name): part for name, part in getattr(value, "__dict__", {}).items()}
