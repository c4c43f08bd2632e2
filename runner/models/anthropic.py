"""Claude, over Anthropic's Messages API.

What the model wrote goes back as it came: every block of a reply, thinking with its signature and blocks of a later
version included, cut out of the reply's own text. A reply is complete only when it names its `stop_reason`. In a
stream, text, thinking and signatures are put together from their pieces.

A tool's arguments are kept as the raw text that the model wrote: a helper that completes them would turn arguments that
were cut off into arguments that look meant. What is no JSON object can't go back as one, so there it is wrapped as
Anthropic's own guide has it; the call keeps the text.

`runner.Agent(parameters=...)` passes through, for example `{"cache_control": {"type": "ephemeral"}}`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.messages import Result, ToolCall, Usage
from runner._agent.model import Request, ToolSpec
from runner.models import _errors, _json, _pieces, _turns
from runner.models._output import ANTHROPIC
from runner.models._vendor import Parsed, Vendor, count, part, tells, terms, texts

WRAP = "INVALID_JSON"


def as_object(arguments: str) -> str:
    """Arguments as the JSON object that the API wants: as they are if they are one, else wrapped."""
    return arguments if _json.strict_object(arguments) else _json.object_of({WRAP: _json.string(arguments)})


def as_written(given: str) -> str:
    """Arguments as the model wrote them, which `as_object` may have wrapped."""
    text = _json.value(_json.inside(given, WRAP) or "null")
    return text if isinstance(text, str) and as_object(text) == given else given


@dataclass
class _Stream(_pieces.Assembly):
    _message: dict[str, str] = field(default_factory=dict)
    _blocks: defaultdict[int, _pieces.Piece] = field(default_factory=lambda: defaultdict(dict))

    def take(self, data: str) -> bool:
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
        self.done = self.done or kind == "message_stop"
        return self.done

    def _block(self, index: int, event: dict[str, str]) -> None:
        if "content_block" in event:
            block = _json.fields(event["content_block"])
            _pieces.add(self._blocks[index], block)
            if block.get("type") == '"tool_use"':
                self.calls[index] = len(self.calls), _json.value(block.get("name", "null"))
            return
        delta = _json.fields(event["delta"])
        kind = _json.value(delta.pop("type"))
        if kind == "citations_delta":
            delta = {"citations": _json.array_of(delta.values())}
        _pieces.add(self._blocks[index], delta)
        if kind == "text_delta":
            self.tell(_json.value(delta["text"]))
        elif kind == "input_json_delta" and index in self.calls:
            self.tell(_json.value(delta["partial_json"]), *self.calls[index])

    def _end(self, event: dict[str, str]) -> None:
        """Take what is known only at the end; its usage is the total, and leaves out what did not change."""
        usage = _json.fields(self._message.get("usage", "{}"))
        usage |= {name: n for name, n in _json.fields(event.pop("usage", "{}")).items() if n != "null"}
        self._message |= _json.fields(event.pop("delta", "{}"))
        self._message |= {name: piece for name, piece in event.items() if name != "type"}
        self._message["usage"] = _json.object_of(usage)

    def _reply(self) -> str:
        for block in self._blocks.values():
            written = _json.joined(block.pop("partial_json", ()))
            if written:
                block["input"] = as_object(written)
        content = _json.array_of(_pieces.written(block) for _, block in sorted(self._blocks.items()))
        return _json.object_of(self._message | {"content": content})


STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}


class Anthropic(Vendor):
    """A model of Anthropic's, over the Messages API. It needs the extra `anthropic`."""

    limits = ("max_tokens",)
    sdk = ("anthropic", "AsyncAnthropic")
    path = "/v1/messages"
    conversation = "messages"
    schema = "output_config"
    dialect = ANTHROPIC
    taken = frozenset({"system"})
    assembly = _Stream

    def _head(self, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 (nothing depends on it)
        system = {"system": request.instructions} if request.instructions else {}
        return {"max_tokens": self._max_tokens, **system}

    def _held(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"format": {"type": "json_schema", "schema": schema}}

    def _tool(self, tool: ToolSpec) -> dict[str, Any]:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}

    def _messages(self, request: Request) -> Iterator[dict[str, Any]]:
        for turn in _turns.turns(request, _kept):
            if isinstance(turn, _turns.Theirs):
                role, blocks = "assistant", _rebuilt(turn) if turn.kept is None else turn.kept
            else:
                role, blocks = "user", [_result(*result) for result in turn.results]
                blocks += [{"type": "text", "text": text} for text in turn.texts]
            if blocks:
                yield {"role": role, "content": blocks}

    def _read(self, reply: Any, raw: str) -> Parsed:
        if reply.get("type") == "error":
            raise _errors.said(raw)
        reason = reply.get("stop_reason")
        if not isinstance(reason, str):
            raise _errors.incomplete("the reply names no stop_reason: it is not complete")
        blocks = list(zip(reply["content"], _json.items(_json.fields(raw)["content"]), strict=True))
        calls = [
            ToolCall(
                tool=block["name"],
                arguments=as_written(_json.fields(piece).get("input", "{}")),
                provider_id=block["id"],
            )
            for block, piece in blocks
            if block["type"] == "tool_use"
        ]
        usage = part(reply, "usage")
        read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
        for_an_hour = count(part(usage, "cache_creation").get("ephemeral_1h_input_tokens"))
        return Parsed(
            text=texts(block.get("text") for block, _ in blocks if block["type"] == "text"),
            calls=calls,
            stop=STOPS.get(reason, "tool_calls" if calls else "stop"),
            usage=Usage(
                input_tokens=count(usage.get("input_tokens")) + read + written,
                output_tokens=count(usage.get("output_tokens")),
                cache_read_tokens=read,
                cache_write_tokens=written,
            )
            if tells(usage, "input_tokens", "output_tokens")
            else None,
            more={
                "cache_write_1h_tokens": min(for_an_hour, written),
                "web_searches": count(part(usage, "server_tool_use").get("web_search_requests")),
            },
            terms=terms(usage, "service_tier", "speed"),
        )


def _result(call: str, result: Result) -> dict[str, Any]:
    content: Any = result.text
    if result.images:
        content = [{"type": "text", "text": result.text}] + [
            {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.data}}
            for image in result.images
        ]
    return {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": _turns.failed(result)}


def _kept(raw: str) -> tuple[Any, int] | None:
    return _turns.kept(raw, "content", "tool_use") if _json.inside(raw, "type") == '"message"' else None


def _rebuilt(turn: _turns.Theirs) -> list[dict[str, Any]]:
    """A reply that another vendor wrote, or that is not to be repeated whole, from its text and calls."""
    reply = turn.reply
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text.strip() else []
    for call in reply.calls:
        given = _json.raw(as_object(call.arguments))
        blocks.append({"type": "tool_use", "id": turn.ids[call.id], "name": call.tool, "input": given})
    return blocks
