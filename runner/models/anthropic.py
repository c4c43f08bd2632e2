"""Claude, over Anthropic's Messages API.

What the model wrote goes back as it came: every block of a reply, thinking with its signature and blocks of a later
version included, cut out of the reply's own text. A reply is complete only when it names its `stop_reason`.

`runner.Agent(parameters=...)` passes through, for example `{"cache_control": {"type": "ephemeral"}}`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from replay import Reply, ToolCall, Usage
from runner._model import Request
from runner.models import _anthropic_stream, _errors, _json, _turns
from runner.models._prices import Price
from runner.models._vendor import MAX_TOKENS, OnText, Parsed, Vendor, count, refused, texts
from runner.models._wire import Wire, opener, sdk

TAKEN = frozenset({"messages", "model", "stream", "system"})
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
    """A model of Anthropic's.

    model       its name, as `claude-sonnet-5-5`
    max_tokens  the most tokens of one reply, thinking included
    client      an `anthropic.AsyncAnthropic` of yours; its retries are turned off. Without one, each ask opens its own,
                which finds its key where the SDK does (`ANTHROPIC_API_KEY`)
    base_url    where it is served, if not where the SDK says
    on_text     called with each piece of text as it comes; then the reply is streamed. What it heard of a reply that
                broke off comes again with the next attempt
    prices      its price, instead of the list's

    Raises `runner.models.NotInstalled` without the extra `anthropic`.
    """

    limits = ("max_tokens",)

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int = MAX_TOKENS,
        client: Any = None,
        base_url: str | None = None,
        on_text: OnText | None = None,
        prices: Price | None = None,
    ) -> None:
        package = sdk("anthropic", "anthropic")
        wire = Wire("/v1/messages", package.AsyncAnthropic, opener(package, "AsyncAnthropic", base_url), client)
        super().__init__(model, wire, max_tokens=max_tokens, on_text=on_text, prices=prices, seller="anthropic")

    def _fields(self, request: Request) -> dict[str, Any]:
        given = _turns.parameters(request, TAKEN)
        own = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
        ]
        fields: dict[str, Any] = {"model": self.name, "max_tokens": self._max_tokens}
        if request.instructions:
            fields["system"] = request.instructions
        fields |= _turns.tools(own, given) | given
        fields["messages"] = _messages(request)
        if self._on_text is not None:
            fields["stream"] = True
        return fields

    def _assembly(self) -> _anthropic_stream.Assembly:
        return _anthropic_stream.Assembly(self._told)

    def _read(self, raw: str, arguments: Mapping[int, str]) -> Parsed:
        message = _json.value(raw)
        if message.get("type") == "error":
            raise _errors.said(raw)
        reason = message.get("stop_reason")
        if not isinstance(reason, str):
            raise _errors.incomplete("the reply names no stop_reason: it is not complete")
        blocks = list(enumerate(zip(message["content"], _json.items(_json.fields(raw)["content"]), strict=True)))
        calls = [
            ToolCall(
                tool=block["name"],
                arguments=arguments[index] if index in arguments else _json.fields(piece).get("input", "{}"),
                provider_id=block["id"],
            )
            for index, (block, piece) in blocks
            if block["type"] == "tool_use"
        ]
        stop = STOPS.get(reason, "tool_calls" if calls else "stop")
        usage = message.get("usage") or {}
        read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
        return Parsed(
            text=texts(block.get("text") for _, (block, _) in blocks if block["type"] == "text"),
            calls=refused(calls, stop),
            stop=stop,
            model=str(message.get("model") or ""),
            usage=Usage(
                input_tokens=count(usage.get("input_tokens")) + read + written,
                output_tokens=count(usage.get("output_tokens")),
                cache_read_tokens=read,
                cache_write_tokens=written,
            )
            if usage
            else None,
            more={
                "cache_write_1h_tokens": count((usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens")),
                "web_searches": count((usage.get("server_tool_use") or {}).get("web_search_requests")),
            },
            terms={name: usage[name] for name in ("service_tier", "speed") if isinstance(usage.get(name), str)},
        )


def _messages(request: Request) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for turn in _turns.turns(request):
        if isinstance(turn, Reply):
            blocks: Any = _blocks(turn.raw, len(turn.calls))
            ids = _turns.names(turn, verbatim=blocks is not None)
            blocks = _rebuilt(turn, ids) if blocks is None else blocks
        else:
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": ids.get(result.call, result.provider_id),
                    "content": result.text,
                    "is_error": _turns.failed(result),
                }
                for result in turn.results
            ]
            blocks += [{"type": "text", "text": text} for text in turn.texts]
        if blocks:
            messages.append({"role": "assistant" if isinstance(turn, Reply) else "user", "content": blocks})
    return messages


@functools.lru_cache(maxsize=2048)
def _blocks(raw: str, calls: int) -> tuple[msgspec.Raw, ...] | None:
    """The blocks of a reply as they came; None when it is no reply of this vendor's with just these calls to answer."""
    content = _json.inside(raw, "content") if _json.inside(raw, "type") == '"message"' else None
    try:
        pieces = _json.items(content or "")
    except _json.NotJson:
        return None
    asked = sum(_json.inside(piece, "type") == '"tool_use"' for piece in pieces)
    return tuple(_json.raw(piece) for piece in pieces) if asked == calls else None


def _rebuilt(reply: Reply, ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """A reply that another vendor wrote, or that is not to be repeated whole, from its text and calls."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text.strip() else []
    for call in reply.calls:
        given = _json.raw(_anthropic_stream.as_object(call.arguments))
        blocks.append({"type": "tool_use", "id": ids[call.id], "name": call.tool, "input": given})
    return blocks
