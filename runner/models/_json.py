"""JSON as it was written: values are cut out of a vendor's text, never rebuilt from what they mean.

What a provider sent goes back to it byte for byte: the spelling of a number, the order of fields,
escapes that no UTF-8 text can hold, fields that this version does not know. So a reply is cut into pieces of its own
text, and a request is written around them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from runner.errors import BadAgent

_decoder = json.JSONDecoder()
_signs = re.compile(r"[ \t\n\r]*([][{}:,]?)[ \t\n\r]*")
_surrogates = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """Text that is not the JSON it should be."""


def value(text: str) -> Any:
    """What `text` means. Raises `NotJson`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def fields(text: str) -> dict[str, str]:
    """The values of an object, each as it was written. Raises `NotJson` when `text` is no object."""
    cut = _cut(text, "{", ":,", "}")
    names, pieces = cut[::2], cut[1::2]
    if len(names) != len(pieces) or not all(name.startswith('"') for name in names):
        raise NotJson("a field has no name, or no value")
    return dict(zip(map(value, names), pieces, strict=True))


def items(text: str) -> list[str]:
    """The elements of an array, each as it was written. Raises `NotJson` when `text` is no array."""
    return _cut(text, "[", ",", "]")


def _cut(text: str, begin: str, between: str, end: str) -> list[str]:
    """The values between two signs, each as it was written; behind them stand the signs `between`, in turn."""
    found: list[str] = []
    sign, at = _sign(text, 0)
    if sign != begin:
        raise NotJson(f"{begin} was expected")
    if text[at : at + 1] == end:
        return found
    while sign != end:
        try:
            _, to = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error)) from error
        found.append(text[at:to])
        sign, at = _sign(text, to)
        if sign not in (between[len(found) % len(between) - 1], end):
            raise NotJson(f"{end} was expected at {to}")
    return found


def _sign(text: str, at: int) -> tuple[str, int]:
    """The sign that stands here, or none, and where what is behind it begins."""
    found = _signs.match(text, at)
    assert found is not None  # it matches nothing at all, too
    return found[1], found.end()


def inside(text: str, *path: str | int) -> str | None:
    """The value at a path of names and indexes, as it was written, or None when there is none."""
    try:
        for step in path:
            text = fields(text)[step] if isinstance(step, str) else items(text)[step]
    except (NotJson, LookupError):
        return None
    return text


def raw(text: str) -> msgspec.Raw:
    """A piece of JSON that `write` puts into a request as it is."""
    return msgspec.Raw(text.encode())


def joined(pieces: Iterable[str]) -> str:
    """Pieces as one text; a character that was cut in two between them is whole again."""
    text = "".join(pieces)
    return (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _surrogates.search(text) else text
    )


def string(text: str) -> str:
    """`text` as a JSON string; a surrogate that has no partner is written as the escape it came as."""
    return json.dumps(text, ensure_ascii=bool(_surrogates.search(text)))


def strict_object(text: str) -> bool:
    """Whether `text` is a JSON object by the letter of the standard, which has no NaN."""

    def refuse(constant: str) -> None:
        raise NotJson(f"{constant} is no JSON")

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except (ValueError, RecursionError):
        return False


def object_of(pieces: Mapping[str, str]) -> str:
    """An object whose values are pieces of JSON."""
    return "{" + ",".join(f"{string(name)}:{piece}" for name, piece in pieces.items()) + "}"


def array_of(pieces: Iterable[str]) -> str:
    """An array of pieces of JSON."""
    return "[" + ",".join(pieces) + "]"


def write(body: Mapping[str, Any]) -> bytes:
    """A request's body: the same value, the same bytes, in every process.

    Raises `BadAgent` when instructions, tools or parameters hold what no JSON can.
    """
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadAgent(f"the request can't be written as JSON: {error}") from error
