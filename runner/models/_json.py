"""JSON as it was written: values are cut out of a vendor's text, never rebuilt from what they mean.

What a provider sent goes back to it byte for byte: the spelling of a number, the order of fields,
escapes that no UTF-8 text can hold, fields that this version does not know. So a reply is cut into pieces of its own
text, and a request is written around them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from runner.errors import BadAgent

_decoder = json.JSONDecoder()
_space = re.compile(r"[ \t\n\r]*")
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
    found: dict[str, str] = {}

    def field(at: int) -> int:
        name, at = _one(text, at)
        if not isinstance(name, str):
            raise NotJson(f"a field's name at {at} is no string")
        begin = _expect(text, _skip(text, at), ":")
        _, end = _one(text, begin)
        found[name] = text[begin:end]
        return end

    _members(text, "{}", field)
    return found


def items(text: str) -> list[str]:
    """The elements of an array, each as it was written. Raises `NotJson` when `text` is no array."""
    found: list[str] = []

    def item(at: int) -> int:
        _, end = _one(text, at)
        found.append(text[at:end])
        return end

    _members(text, "[]", item)
    return found


def _members(text: str, signs: str, member: Callable[[int], int]) -> None:
    """Give the place of each member between two signs to `member`, which says where the member ends."""
    at = _expect(text, _skip(text, 0), signs[0])
    while text[at : at + 1] != signs[1]:
        at = _skip(text, member(at))
        at = at if text[at : at + 1] == signs[1] else _expect(text, at, ",")


def inside(text: str, *path: str | int) -> str | None:
    """The value at a path of names and indexes, as it was written, or None when there is none."""
    try:
        for step in path:
            text = fields(text)[step] if isinstance(step, str) else items(text)[step]
    except (NotJson, LookupError):
        return None
    return text


def _skip(text: str, at: int) -> int:
    found = _space.match(text, at)
    assert found is not None  # it matches nothing at all, too
    return found.end()


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise NotJson(f"{sign} was expected at {at}")
    return _skip(text, at + 1)


def _one(text: str, at: int) -> tuple[Any, int]:
    try:
        return _decoder.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def raw(text: str) -> msgspec.Raw:
    """A piece of JSON that `write` puts into a request as it is."""
    return msgspec.Raw(text.encode())


def joined(pieces: Iterable[str]) -> str:
    """Pieces as one text; a character that was cut in two between them is whole again."""
    text = "".join(pieces)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _lone(text) else text


def string(text: str) -> str:
    """`text` as a JSON string; a surrogate that has no partner is written as the escape it came as."""
    return json.dumps(text, ensure_ascii=_lone(text))


def strict_object(text: str) -> bool:
    """Whether `text` is a JSON object by the letter of the standard, which has no NaN."""

    def refuse(constant: str) -> None:
        raise NotJson(f"{constant} is no JSON")

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except (ValueError, RecursionError):
        return False


def _lone(text: str) -> bool:
    return _surrogates.search(text) is not None


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
