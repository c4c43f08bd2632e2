"""A chat completion out of the chunks of its stream, as the server would have sent it in one piece.

The reply is whole when a `finish_reason` came and then the `[DONE]` that ends the protocol: the usage stands between
them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from runner.models import _errors, _json, _pieces

DONE = "[DONE]"


class Assembly:
    """One stream; `heard` is given each piece."""

    def __init__(self, heard: Callable[..., None]) -> None:
        self._heard = heard
        self._tools: dict[int, str] = {}
        self._response: dict[str, str] = {}
        self._choice: dict[str, str] = {}
        self._message: _pieces.Piece = {}
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
            _pieces.add(self._message, delta)
            self._heard(_json.value(delta.get("content", "null")))
            self._arguments(_json.value(delta.get("tool_calls", "null")))
        return False

    def _arguments(self, calls: Any) -> None:
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") or {}
            index = call.get("index", 0)
            self._tools[index] = function.get("name") or self._tools.get(index, "")
            self._heard(function.get("arguments"), index, self._tools[index])

    def whole(self) -> tuple[str, Mapping[int, str]]:
        """See `_vendor.Assembly`."""
        if not self._done or "finish_reason" not in self._choice:
            raise _errors.incomplete("the stream ended before the provider said that the reply is complete")
        choice = self._choice | {"message": _pieces.written({"role": '"assistant"', **self._message})}
        choices = _json.array_of([_json.object_of(choice)])
        return _json.object_of(self._response | {"object": '"chat.completion"', "choices": choices}), {}
