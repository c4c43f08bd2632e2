"""A reply of Anthropic's out of the events of its stream, each block with the fields and the spelling it came in.

Text, thinking and signatures are put together from their pieces. A tool's arguments are kept as the raw text that the
model wrote: a helper that completes them would turn arguments that were cut off into arguments that look meant. What is
no JSON object can't go back as one, so there it is wrapped as Anthropic's own guide has it; the call keeps the text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from runner.models import _errors, _json

WRAP = "INVALID_JSON"


def as_object(arguments: str) -> str:
    """Arguments as the JSON object that the API wants: as they are if they are one, else wrapped."""
    return arguments if _json.strict_object(arguments) else _json.object_of({WRAP: _json.string(arguments)})


class Assembly:
    """One stream; `told` is given each piece of text."""

    def __init__(self, told: Callable[[object], None]) -> None:
        self._told = told
        self._message: dict[str, str] = {}
        self._blocks: dict[int, dict[str, str]] = {}
        self._texts: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._lists: dict[int, list[str]] = defaultdict(list)
        self._done = False

    def take(self, data: str) -> bool:
        """See `_vendor.Assembly`. Raises `ModelError` for an error that the provider reports in the stream."""
        event = _json.fields(data)
        kind = _json.value(event["type"])
        if kind == "message_start":
            self._message = _json.fields(event["message"])
        elif kind == "content_block_start":
            self._blocks[int(event["index"])] = _json.fields(event["content_block"])
        elif kind == "content_block_delta":
            self._delta(int(event["index"]), _json.fields(event["delta"]))
        elif kind == "message_delta":
            self._end(event)
        elif kind == "error":
            raise _errors.said(data)
        self._done = self._done or kind == "message_stop"
        return self._done

    def _delta(self, index: int, delta: dict[str, str]) -> None:
        """Add to a block: strings to the field of their name, citations to their list; a signature comes whole."""
        kind = _json.value(delta.pop("type"))
        for name, piece in delta.items():
            meant = _json.value(piece)
            if kind == "citations_delta":
                self._lists[index].append(piece)
            elif isinstance(meant, str) and kind != "signature_delta":
                self._texts[index][name].append(meant)
            else:
                self._blocks[index][name] = piece
            if kind == "text_delta":
                self._told(meant)

    def _end(self, event: dict[str, str]) -> None:
        """Take what is known only at the end; its usage is the total, and leaves out what did not change."""
        usage = _json.fields(self._message.get("usage", "{}"))
        usage |= {name: n for name, n in _json.fields(event.pop("usage", "{}")).items() if n != "null"}
        self._message |= _json.fields(event.pop("delta", "{}"))
        self._message |= {name: piece for name, piece in event.items() if name != "type"}
        self._message["usage"] = _json.object_of(usage)

    def whole(self) -> tuple[str, Mapping[int, str]]:
        """See `_vendor.Assembly`."""
        if not self._done:
            raise _errors.incomplete("the stream ended before the provider said that the reply is complete")
        arguments: dict[int, str] = {}
        blocks = [self._block(place, index, arguments) for place, index in enumerate(sorted(self._blocks))]
        return _json.object_of(self._message | {"content": _json.array_of(blocks)}), arguments

    def _block(self, place: int, index: int, arguments: dict[int, str]) -> str:
        block = dict(self._blocks[index])
        for name, pieces in self._texts[index].items():
            if name == "partial_json":
                written = _json.joined(pieces)
                if written:
                    arguments[place] = written
                    block["input"] = as_object(written)
                continue
            begun = _json.value(block.get(name, '""'))
            block[name] = _json.string(_json.joined([begun if isinstance(begun, str) else "", *pieces]))
        if self._lists[index]:
            cited = block.get("citations", "null")
            block["citations"] = _json.array_of([*(_json.items(cited) if cited != "null" else []), *self._lists[index]])
        return _json.object_of(block)
