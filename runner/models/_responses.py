"""OpenAI's Responses API, nothing stored at OpenAI's.

The log is the conversation, so `store` is off and reasoning comes encrypted; every output item goes back as it came. A
reply is complete only when its `status` says so; streamed, it is the response that `response.completed` carries.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from replay import Reply, ToolCall, Usage
from runner._model import Request
from runner.models import _errors, _json, _turns
from runner.models._prices import Price
from runner.models._vendor import MAX_TOKENS, OnText, Parsed, Vendor, count, refused, texts
from runner.models._wire import Wire, opener, sdk

TAKEN = frozenset({"input", "instructions", "model", "stream"})
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class Responses(Vendor):
    """A model over the Responses API.

    model       its name, as `gpt-6-sol`
    max_tokens  the most tokens of one reply, reasoning included
    client      an `openai.AsyncOpenAI` of yours; its retries are turned off. Without one, each ask opens its own, which
                finds its key where the SDK does (`OPENAI_API_KEY`)
    base_url    where it is served, if not where the SDK says
    on_text     called with each piece of text as it comes; then the reply is streamed. What it heard of a reply that
                broke off comes again with the next attempt
    prices      its price, instead of the list's

    A model without reasoning needs `parameters={"include": []}`. Raises `runner.models.NotInstalled` without the extra
    `openai`.
    """

    limits = ("max_output_tokens",)

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
        wire = openai("/responses", client, base_url)
        super().__init__(model, wire, max_tokens=max_tokens, on_text=on_text, prices=prices, seller="openai")

    def _fields(self, request: Request) -> dict[str, Any]:
        given = _turns.parameters(request, TAKEN)
        own = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,
            }
            for tool in request.tools
        ]
        fields: dict[str, Any] = {"model": self.name, "max_output_tokens": self._max_tokens, "store": False}
        if not given.get("store"):
            fields["include"] = ["reasoning.encrypted_content"]
        if request.instructions:
            fields["instructions"] = request.instructions
        fields |= _turns.tools(own, given) | given
        fields["input"] = list(_input(request))
        if self._on_text is not None:
            fields["stream"] = True
        return fields

    def _assembly(self) -> Assembly:
        return Assembly(self._told)

    def _read(self, raw: str, arguments: Mapping[int, str]) -> Parsed:  # noqa: ARG002 (they are in the reply itself)
        response = _json.value(raw)
        status = response.get("status")
        if status == "failed":
            raise _errors.said(raw)
        if status not in ("completed", "incomplete"):
            raise _errors.incomplete(f"the reply's status is {status}: it is not complete")
        items = response["output"]
        calls = [
            ToolCall(tool=item["name"], arguments=item["arguments"], provider_id=item["call_id"])
            for item in items
            if item["type"] == "function_call"
        ]
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        stop = "tool_calls" if calls else "refusal" if refusals else "stop"
        if status == "incomplete":
            why = (response.get("incomplete_details") or {}).get("reason")
            stop = "refusal" if why == "content_filter" else "length"
        usage = response.get("usage")
        inside = (usage or {}).get("input_tokens_details") or {}
        return Parsed(
            text=texts(part.get("text") for part in parts if part["type"] == "output_text") or texts(refusals),
            calls=refused(calls, stop),
            stop=stop,
            model=str(response.get("model") or ""),
            usage=Usage(
                input_tokens=count(usage["input_tokens"]),
                output_tokens=count(usage["output_tokens"]),
                cache_read_tokens=count(inside.get("cached_tokens")),
                cache_write_tokens=count(inside.get("cache_write_tokens")),
            )
            if usage
            else None,
            more={"web_searches": sum(item["type"] == "web_search_call" for item in items)},
            terms=tier(response),
        )


class Assembly:
    """One stream; `told` is given each piece of text. Its last event carries the whole response."""

    def __init__(self, told: Any) -> None:
        self._told = told
        self._response: str | None = None

    def take(self, data: str) -> bool:
        """See `_vendor.Assembly`. Raises `ModelError` for an error that the provider reports in the stream."""
        event = _json.fields(data)
        kind = _json.value(event["type"])
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self._told(_json.value(event["delta"]))
        elif kind == "error":
            raise _errors.said(data)
        elif kind in ENDS:
            self._response = event["response"]
        return self._response is not None

    def whole(self) -> tuple[str, Mapping[int, str]]:
        """See `_vendor.Assembly`."""
        if self._response is None:
            raise _errors.incomplete("the stream ended before the provider said that the reply is complete")
        return self._response, {}


def openai(path: str, client: Any, base_url: str | None) -> Wire:
    """The way to a server that speaks one of OpenAI's protocols. Raises `NotInstalled`."""
    package = sdk("openai", "openai")
    make = opener(package, "AsyncOpenAI", base_url)
    # An administrator's key, which the SDK also finds in the environment, has no business in an ask.
    return Wire(path, package.AsyncOpenAI, make, client, {"security": {"bearer_auth": True}})


def tier(response: Mapping[str, Any]) -> dict[str, str]:
    """The terms on which an answer was given, as a list of prices names them."""
    found = response.get("service_tier")
    return {"service_tier": found} if isinstance(found, str) else {}


def _input(request: Request) -> Iterator[Any]:
    ids: dict[str, str] = {}
    for turn in _turns.turns(request):
        if isinstance(turn, Reply):
            items = _items(turn.raw, len(turn.calls))
            ids = _turns.names(turn, verbatim=items is not None)
            yield from _rebuilt(turn, ids) if items is None else items
            continue
        for result in turn.results:
            call = ids.get(result.call, result.provider_id)
            yield {"type": "function_call_output", "call_id": call, "output": result.text}
        for text in turn.texts:
            yield {"role": "user", "content": text}


@functools.lru_cache(maxsize=2048)
def _items(raw: str, calls: int) -> tuple[msgspec.Raw, ...] | None:
    """The items of a reply as they came; None when it is no reply of this kind with just these calls to answer."""
    try:
        pieces = _json.items(_json.inside(raw, "output") or "")
    except _json.NotJson:
        return None
    asked = sum(_json.inside(piece, "type") == '"function_call"' for piece in pieces)
    return tuple(_json.raw(piece) for piece in pieces) if asked == calls else None


def _rebuilt(reply: Reply, ids: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A reply that another vendor wrote, or that is not to be repeated whole, from its text and calls."""
    if reply.text:
        yield {"role": "assistant", "content": reply.text}
    for call in reply.calls:
        yield {"type": "function_call", "call_id": ids[call.id], "name": call.tool, "arguments": call.arguments}
