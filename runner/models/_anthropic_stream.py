"""A reply of Anthropic's out of the events of its stream, each block with the fields and the spelling it came in.

Text, thinking and signatures are put together from their pieces. A tool's arguments are kept as the raw text that the
model wrote: a helper that completes them would turn arguments that were cut off into arguments that look meant. What is
no JSON object can't go back as one, so there it is wrapped as Anthropic's own guide has it; the call keeps the text.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

from runner.models import _errors, _json, _pieces

WRAP = "INVALID_JSON"


def as_object(arguments: str) -> str:
    """Arguments as the JSON object that the API wants: as they are if they are one, else wrapped."""
    return arguments if _json.strict_object(arguments) else _json.object_of({WRAP: _json.string(arguments)})


class Assembly:
    """One stream; `heard` is given each piece."""

    def __init__(self, heard: Callable[..., None]) -> None:
        self._heard = heard
        self._calls: dict[int, tuple[int, object]] = {}
        self._message: dict[str, str] = {}
        self._blocks: defaultdict[int, _pieces.Piece] = defaultdict(dict)
        self._done = False

    def take(self, data: str) -> bool:
        """See `_vendor.Assembly`. Raises `ModelError` for an error that the provider reports in the stream."""
        event = _json.fields(data)
        kind = _json.value(event["type"])
        if kind == "message_start":
            self._message = _json.fields(event["message"])
        elif kind in ("content_block_start", "content_block_delta"):
            self._block(int(event["index"]), event)
        elif kind == "message_delta":
            self._end(event)
        elif kind == "error":
            raise _errors.said(data)
        self._done = self._done or kind == "message_stop"
        return self._done

    def _block(self, index: int, event: dict[str, str]) -> None:
        if "content_block" in event:
            block = _json.fields(event["content_block"])
            _pieces.add(self._blocks[index], block)
            if block.get("type") == '"tool_use"':
                self._calls[index] = len(self._calls), _json.value(block.get("name", "null"))
            return
        delta = _json.fields(event["delta"])
        kind = _json.value(delta.pop("type"))
        if kind == "citations_delta":
            delta = {"citations": _json.array_of(delta.values())}
        _pieces.add(self._blocks[index], delta)
        if kind == "text_delta":
            self._heard(_json.value(delta["text"]))
        elif kind == "input_json_delta" and index in self._calls:
            self._heard(_json.value(delta["partial_json"]), *self._calls[index])

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
        blocks = [block for _, block in sorted(self._blocks.items())]
        for place, block in enumerate(blocks):
            raw = _json.joined(block.pop("partial_json", ()))
            if raw:
                arguments[place], block["input"] = raw, as_object(raw)
        content = _json.array_of(map(_pieces.written, blocks))
        return _json.object_of(self._message | {"content": content}), arguments
