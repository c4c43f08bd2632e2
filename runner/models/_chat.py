"""Chat Completions, as OpenAI and the many servers compatible with it speak it.

The message goes back as it came, with fields that only its server knows (as `reasoning_content`). A reply is complete
only when it has a `finish_reason`, and a stream only when its end was announced, too. A server that tells no usage is
taken to have used the most that it can have.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from replay import Reply, ToolCall, Usage
from runner._model import Request
from runner.models import _chat_stream, _errors, _json, _turns
from runner.models._prices import Price
from runner.models._responses import openai, tier
from runner.models._vendor import MAX_TOKENS, OnText, Parsed, Vendor, count, refused

TAKEN = frozenset({"messages", "model", "n", "stream"})
HOME = "https://api.openai.com/v1"
STOPS = {"stop": "stop", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length"}
BROKEN = frozenset({"error", "insufficient_system_resource"})
"""What some servers give for a finish_reason when the reply broke off."""


class Chat(Vendor):
    """A model over Chat Completions.

    model       its name
    max_tokens  the most tokens of one reply. It is sent as `max_tokens`, which every compatible server knows, or to
                OpenAI as `max_completion_tokens`; a parameter of either name is sent instead
    client      an `openai.AsyncOpenAI` of yours; its retries are turned off. Without one, each ask opens its own, which
                finds its key where the SDK does (`OPENAI_API_KEY`)
    base_url    where it is served, if not where the SDK says
    on_text     called with each piece of text as it comes; then the reply is streamed. What it heard of a reply that
                broke off comes again with the next attempt
    prices      its price, instead of the list's, which knows the better known servers by their address

    Raises `runner.models.NotInstalled` without the extra `openai`.
    """

    limits = ("max_completion_tokens", "max_tokens")

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
        wire = openai("/chat/completions", client, base_url)
        where = str(client.base_url) if client is not None else base_url or os.environ.get("OPENAI_BASE_URL") or HOME
        super().__init__(model, wire, max_tokens=max_tokens, on_text=on_text, prices=prices, seller=where)

    def _fields(self, request: Request) -> dict[str, Any]:
        given = _turns.parameters(request, TAKEN)
        own = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in request.tools
        ]
        fields: dict[str, Any] = {"model": self.name}
        if not given.keys() & set(self.limits):
            fields[self.limits[0] if self._seller.startswith(HOME) else self.limits[1]] = self._max_tokens
        fields |= _turns.tools(own, given) | given
        fields["messages"] = list(_messages(request))
        if self._on_text is not None:
            fields["stream"] = True
            fields.setdefault("stream_options", {"include_usage": True})
        return fields

    def _assembly(self) -> _chat_stream.Assembly:
        return _chat_stream.Assembly(self._told)

    def _read(self, raw: str, arguments: Mapping[int, str]) -> Parsed:  # noqa: ARG002 (they are in the reply itself)
        response = _json.value(raw)
        if response.get("error") and not response.get("choices"):
            raise _errors.said(raw)
        choice = response["choices"][0]
        message, reason = choice["message"], choice.get("finish_reason")
        if not isinstance(reason, str) or reason in BROKEN:
            raise _errors.incomplete(f"the reply's finish_reason is {reason}: it is not complete")
        calls = [_call(call) for call in message.get("tool_calls") or ()]
        refusal = message.get("refusal")
        stop = STOPS.get(reason, "stop")
        if reason == "content_filter" or (refusal and not calls):
            stop = "refusal"
        elif calls and stop == "stop":
            stop = "tool_calls"
        usage = response.get("usage")
        inside = (usage or {}).get("prompt_tokens_details") or {}
        return Parsed(
            text=_text(message.get("content")) or _text(refusal),
            calls=refused(calls, stop),
            stop=stop,
            model=str(response.get("model") or ""),
            usage=Usage(
                input_tokens=count(usage["prompt_tokens"]),
                output_tokens=count(usage["completion_tokens"]),
                cache_read_tokens=count(inside.get("cached_tokens")),
                cache_write_tokens=count(inside.get("cache_write_tokens")),
            )
            if usage
            else None,
            terms=tier(response),
        )


def _call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments")
    if not isinstance(arguments, str):  # some servers give the object itself, or nothing for no arguments
        arguments = "{}" if arguments is None else _json.write(arguments).decode()
    return ToolCall(tool=function["name"], arguments=arguments, provider_id=str(call.get("id") or ""))


def _text(content: Any) -> str:
    """The text of a message, which some servers give in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _messages(request: Request) -> Iterator[Any]:
    if request.instructions:
        yield {"role": "system", "content": request.instructions}
    ids: dict[str, str] = {}
    for turn in _turns.turns(request):
        if isinstance(turn, Reply):
            message = _message(turn.raw, len(turn.calls))
            ids = _turns.names(turn, verbatim=message is not None)
            if turn.text or turn.calls:  # a message that says nothing is refused
                yield _rebuilt(turn, ids) if message is None else message
            continue
        for result in turn.results:
            call = ids.get(result.call, result.provider_id)
            yield {"role": "tool", "tool_call_id": call, "content": result.text}
        for text in turn.texts:
            yield {"role": "user", "content": text}


@functools.lru_cache(maxsize=2048)
def _message(raw: str, calls: int) -> msgspec.Raw | None:
    """The message of a reply as it came; None when it is no reply of this kind with just these calls to answer."""
    message = _json.inside(raw, "choices", 0, "message")
    if message is None:
        return None
    asked = _json.inside(message, "tool_calls") or "null"
    found = 0 if asked == "null" else len(_json.items(asked))
    return _json.raw(message) if found == calls else None


def _rebuilt(reply: Reply, ids: Mapping[str, str]) -> dict[str, Any]:
    """A reply that another vendor wrote, or that is not to be repeated whole, from its text and calls."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": ids[call.id], "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in reply.calls
        ]
    return message
