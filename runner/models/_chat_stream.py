"""A chat completion out of the chunks of its stream, as the server would have sent it in one piece.

Texts are put together by the name of their field, known or not, and tool calls by their index; whatever else a chunk
says replaces what was said before. The reply is whole when a `finish_reason` came and then the `[DONE]` that ends the
protocol: the usage stands between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runner.models import _errors, _json

DONE = "[DONE]"
WHOLE = frozenset({"format", "id", "name", "role", "signature", "status", "type"})
"""Fields that come whole, and by some servers again with each piece."""

Piece = dict[str, Any]


class Assembly:
    """One stream; `told` is given each piece of text."""

    def __init__(self, told: Callable[[object], None]) -> None:
        self._told = told
        self._response: dict[str, str] = {}
        self._choice: dict[str, str] = {}
        self._message: Piece = {}
        self._done = False

    def take(self, data: str) -> bool:
        """See `_vendor.Assembly`. Raises `ModelError` for an error that the provider reports in the stream."""
        if data.strip() == DONE:
            self._done = True
            return True
        chunk = _json.fields(data)
        if "error" in chunk and chunk["error"] != "null":
            raise _errors.said(data)
        choices = _json.items(chunk.pop("choices", "[]"))
        self._response |= {name: piece for name, piece in chunk.items() if piece != "null"}
        for piece in choices[:1]:
            choice = _json.fields(piece)
            delta = _json.fields(choice.pop("delta", "{}"))
            self._choice |= {name: said for name, said in choice.items() if said != "null"}
            _add(self._message, delta)
            self._told(_json.value(delta.get("content", "null")))
        return False

    def whole(self) -> tuple[str, Mapping[int, str]]:
        """See `_vendor.Assembly`."""
        if not self._done or "finish_reason" not in self._choice:
            raise _errors.incomplete("the stream ended before the provider said that the reply is complete")
        choice = self._choice | {"message": _written({"role": '"assistant"', **self._message})}
        choices = _json.array_of([_json.object_of(choice)])
        return _json.object_of(self._response | {"object": '"chat.completion"', "choices": choices}), {}


def _add(onto: Piece, delta: Mapping[str, str]) -> None:
    """Add a delta to an object; the same field may be told in many pieces, one of them null."""
    for name, piece in delta.items():
        meant = _json.value(piece)
        known = onto.get(name)
        if isinstance(meant, list):
            onto[name] = known if isinstance(known, Items) else Items()
            for item in _json.items(piece):
                onto[name].add(item)
        elif isinstance(meant, dict):
            onto[name] = known if isinstance(known, dict) else {}
            _add(onto[name], _json.fields(piece))
        elif isinstance(meant, str) and name not in WHOLE:
            onto[name] = known if isinstance(known, Texts) else Texts()
            onto[name].append(meant)
        elif name not in onto or meant not in (None, ""):
            onto[name] = piece


class Texts(list[str]):
    """A text in pieces."""


class Items:
    """A list: objects with an index are told in pieces, each under its own; whatever has none comes whole."""

    def __init__(self) -> None:
        self._items: dict[int, Piece | str] = {}

    def add(self, item: str) -> None:
        """Add an item, or a piece of one."""
        fields = _json.fields(item) if item.startswith("{") else {}
        if "index" not in fields:
            self._items[max(self._items, default=-1) + 1] = item
            return
        known = self._items.setdefault(int(fields.pop("index")), {})
        if isinstance(known, dict):
            _add(known, fields)

    def written(self) -> str:
        """The list as JSON."""
        return _json.array_of(_written(self._items[index]) for index in sorted(self._items))


def _written(node: Any) -> str:
    if isinstance(node, Texts):
        return _json.string(_json.joined(node))
    if isinstance(node, Items):
        return node.written()
    if isinstance(node, dict):
        return _json.object_of({name: _written(inner) for name, inner in node.items()})
    return str(node)
