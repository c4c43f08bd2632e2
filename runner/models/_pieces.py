"""A reply in pieces: objects that are put together from what a stream says of them, field by field.

Texts are put together by the name of their field, known or not, and what a list holds by its index; whatever else a
piece says replaces what was said before. A value that comes whole keeps its spelling.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.models import _errors, _json

WHOLE = frozenset({"format", "id", "name", "role", "signature", "status", "type"})
"""Fields that come whole, and by some servers again with each piece."""

Piece = dict[str, Any]
"""An object: texts, lists and objects in pieces, and whatever came whole as the JSON it came as."""

_BLANK = frozenset({"null", '""'})


@dataclass
class Assembly(ABC):
    """Makes one reply out of a stream's events; `heard` is the request's, which is given each piece.

    `calls` are those that have begun, by how the stream names them, each with its place among them and its tool.
    """

    heard: Callable[..., None]
    calls: dict[Any, tuple[int, object]] = field(default_factory=dict)
    done: bool = False

    @abstractmethod
    def take(self, data: str) -> bool:
        """Take an event's data; True when the provider said that the reply is complete.

        Raises `ModelError` for an error that the provider reports in the stream.
        """

    def tell(self, text: object, *call: object) -> None:
        """Pass on a piece of text, or of a call's arguments."""
        if isinstance(text, str) and text:
            self.heard(text, *call)

    def whole(self) -> str:
        """The reply as the provider would have sent it in one piece. Raises `ModelError` when it is not complete."""
        if not self.done:
            raise _errors.incomplete("the stream ended before the provider said that the reply is complete")
        return self._reply()

    @abstractmethod
    def _reply(self) -> str:
        """`whole`, once it is complete."""


def add(onto: Piece, delta: Mapping[str, str]) -> None:
    """Add a delta to an object; the same field may come in many pieces, some of them null."""
    for name, piece in delta.items():
        meant = _json.value(piece)
        known = onto.get(name)
        if isinstance(meant, list):
            onto[name] = known if isinstance(known, Items) else Items()
            for item in _json.items(piece):
                onto[name].add(item)
        elif isinstance(meant, dict):
            onto[name] = known if isinstance(known, dict) else {}
            add(onto[name], _json.fields(piece))
        elif isinstance(meant, str) and name not in WHOLE:
            onto[name] = known if isinstance(known, Texts) else Texts()
            onto[name].append(meant)
        elif name not in onto or meant not in (None, ""):
            onto[name] = piece


class Texts(list[str]):
    """A text in pieces."""


class Items:
    """A list: objects with an index come in pieces; an object without one comes whole.

    Some servers send the same index for every call. So a piece with another id or another function's name than the
    object that it would be added to begins a new object.
    """

    def __init__(self) -> None:
        self._items: dict[tuple[int, int], Piece | str] = {}
        self._most = -1
        self._last: dict[int, int] = {}  # of each index, how many objects came before its last one

    def add(self, item: str) -> None:
        """Add an item, or a piece of one."""
        fields = _json.fields(item) if item.startswith("{") else {}
        if fields.get("index", "null") == "null":
            self._most += 1
            self._items[self._most, 0] = item
            return
        index = int(fields.pop("index"))
        self._most = max(self._most, index)
        last = self._last.setdefault(index, 0)
        known = self._items.setdefault((index, last), {})
        if isinstance(known, dict) and _is_another(known, fields):
            self._last[index] = last + 1
            known = self._items.setdefault((index, last + 1), {})
        if isinstance(known, dict):
            add(known, fields)

    def written(self) -> str:
        return _json.array_of(written(self._items[index]) for index in sorted(self._items))


def _is_another(known: Piece, piece: Mapping[str, str]) -> bool:
    """Whether a piece names another call than the one known so far."""
    function = known.get("function")
    names = (
        _json.inside(piece.get("function", "{}"), "name"),
        function.get("name") if isinstance(function, dict) else "",
    )
    return any(
        one and other and _BLANK.isdisjoint((one, other)) and one != other
        for one, other in ((piece.get("id"), known.get("id")), names)
    )


def written(node: Any) -> str:
    if isinstance(node, Texts):
        return _json.string(_json.joined(node))
    if isinstance(node, Items):
        return node.written()
    if isinstance(node, dict):
        return _json.object_of({name: written(inner) for name, inner in node.items()})
    return str(node)
