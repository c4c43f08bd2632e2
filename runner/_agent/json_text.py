"""JSON that a model wrote, read so that no two readers could differ.

A key given twice, NaN, text after the value, half a character, and a number that a double can't hold exactly (RFC 7493,
2.2) are refused or put right here: a person who approves must see the same arguments as the tool gets.
"""

import decimal
import json
import re
from collections import Counter
from typing import Any

MAX_DEPTH = 64

_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")


class InvalidArguments(Exception):
    """Arguments that can't be used; the text is for the model."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise InvalidArguments(f"the key {twice!r} is given twice")
    return found


def _constant(word: str) -> Any:
    raise InvalidArguments(f"{word} is not JSON")


def _float(digits: str) -> float:
    value = float(digits)
    try:
        exact = decimal.Decimal(digits) == decimal.Decimal(repr(value))
    except decimal.InvalidOperation:  # an exponent beyond every bound
        exact = False
    if not exact:
        raise InvalidArguments(f"the number {digits[:40]} can't be held exactly; give fewer digits")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def read(text: str) -> Any:
    """One JSON value. Raises `InvalidArguments` for anything else."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise InvalidArguments(f"they are nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        raise InvalidArguments(f"they are not valid JSON ({error})") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise InvalidArguments(f"they are nested deeper than {MAX_DEPTH}")
    return _storable(value) if _ESCAPED.search(text) else value


def same(value: Any, text: str) -> bool:
    """Whether parsed JSON is what a text says; 1 is not true."""
    return json.dumps(value, sort_keys=True) == json.dumps(json.loads(text), sort_keys=True)


def parse(arguments: str) -> dict[str, Any]:
    """Raw arguments as a dictionary. Raises `InvalidArguments` for anything that is not exactly one JSON object."""
    value = read(arguments or "{}")
    if not isinstance(value, dict):
        raise InvalidArguments("they are not a JSON object")
    return value


def without_surrogates(text: str) -> str:
    """A text with U+FFFD for each half of a character."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def written(value: object) -> str:
    """A value as JSON, with U+FFFD for each half of a character."""
    return without_surrogates(json.dumps(value, ensure_ascii=False))


def _storable(value: Any) -> Any:
    """`value` with U+FFFD for what UTF-8 can't hold: no tool meets text that it can't send or save."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_storable(member) for member in value]
    if isinstance(value, dict):
        return _object([(_storable(name), _storable(member)) for name, member in value.items()])
    return value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [v for x in level for v in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())]
    return depth
