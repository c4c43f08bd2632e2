"""Chat Completions, as OpenAI and the many servers compatible with it speak it.

The message goes back as it came, with fields that only its server knows (such as `reasoning_content`). A reply is
complete only when it has a `finish_reason`, and a stream only after its `[DONE]`: the usage stands between them. A
server that reports no usage counts as having used the bound.
"""

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from replay.messages import ToolCall
from runner._agent.model import Request, ToolSpec
from runner.models import _errors, _json, _pieces, _turns
from runner.models._vendor import Parsed, Vendor, terms, usage

DONE = "[DONE]"


@dataclass
class Stream(_pieces.Assembly):
    _response: dict[str, str] = field(default_factory=dict)
    _choice: dict[str, str] = field(default_factory=dict)
    _message: _pieces.Piece = field(default_factory=dict)

    def take(self, data: str) -> bool:
        if data.strip() == DONE:
            self.done = "finish_reason" in self._choice
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
            self.tell(_json.value(delta.get("content", "null")))
            self._arguments(_json.value(delta.get("tool_calls", "null")))
        return False

    def _arguments(self, calls: Any) -> None:
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") or {}
            index = call.get("index", 0)
            self.calls[index] = index, function.get("name") or self.calls.get(index, (index, ""))[1]
            self.tell(function.get("arguments"), *self.calls[index])

    def _reply(self) -> str:
        choice = self._choice | {"message": _pieces.written({"role": '"assistant"', **self._message})}
        choices = _json.array_of([_json.object_of(choice)])
        return _json.object_of(self._response | {"object": '"chat.completion"', "choices": choices})


HOME = "https://api.openai.com/v1"
STOPS = {"stop": "stop", "tool_calls": "tool_calls", "function_call": "tool_calls", "length": "length"}
BROKEN = frozenset({"error", "insufficient_system_resource"})
"""What some servers give for a finish_reason when the reply broke off."""


class OpenAI(Vendor):
    """What is the same for both of OpenAI's APIs."""

    sdk = ("openai", "AsyncOpenAI")
    options: ClassVar = {"security": {"bearer_auth": True}}
    """Without an administrator's key, which the SDK also finds in the environment."""


class Chat(OpenAI):
    """A model over Chat Completions, of OpenAI or a compatible server. It needs the extra `openai`.

    `max_tokens` is sent under that name, which every compatible server knows, and to OpenAI as `max_completion_tokens`.
    A parameter of either name replaces it. Prices of well-known servers are found by their address.
    """

    limits = ("max_completion_tokens", "max_tokens")
    path = "/chat/completions"
    conversation = "messages"
    schema = "response_format"
    taken = frozenset({"n"})
    assembly = Stream

    def _sold_by(self, client: Any, base_url: str | None) -> str:
        return str(client.base_url) if client is not None else base_url or os.environ.get("OPENAI_BASE_URL") or HOME

    def _head(self, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
        limit = () if given.keys() & set(self.limits) else self.limits[not self._seller.startswith(HOME) :][:1]
        stream = {"stream_options": {"include_usage": True}} if request.heard is not None else {}
        return dict.fromkeys(limit, self._max_tokens) | stream

    def _held(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "json_schema", "json_schema": {"name": "output", "strict": True, "schema": schema}}

    def _tool(self, tool: ToolSpec) -> dict[str, Any]:
        named = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        return {"type": "function", "function": named}

    def _messages(self, request: Request) -> Iterator[Any]:
        if request.instructions:
            yield {"role": "system", "content": request.instructions}
        for turn in _turns.turns(request, _kept):
            if isinstance(turn, _turns.Theirs):
                if turn.reply.text or turn.reply.calls:  # a message that says nothing is refused
                    yield _rebuilt(turn) if turn.kept is None else turn.kept
                continue
            for call, result in turn.results:
                yield {"role": "tool", "tool_call_id": call, "content": result.text}
            urls = [url for _, result in turn.results for url in _turns.images(result)]
            if urls:  # a tool's message holds text alone
                yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}} for url in urls]}
            for text in turn.texts:
                yield {"role": "user", "content": text}

    def _read(self, reply: Any, raw: str) -> Parsed:
        if reply.get("error") and not reply.get("choices"):
            raise _errors.said(raw)
        choice = reply["choices"][0]
        message, reason = choice["message"], choice.get("finish_reason")
        if not isinstance(reason, str) or reason in BROKEN:
            raise _errors.incomplete(f"the reply's finish_reason is {reason}: it is not complete")
        calls = _calls(message, raw)
        refusal = message.get("refusal")
        stop = STOPS.get(reason, "stop")
        if reason == "content_filter" or (refusal and not calls):
            stop = "refusal"
        elif calls and stop == "stop":
            stop = "tool_calls"
        return Parsed(
            text=_text(message.get("content")) or _text(refusal),
            calls=calls,
            stop=stop,
            usage=usage(reply, "prompt_tokens", "completion_tokens"),
            terms=terms(reply, "service_tier"),
        )


def _calls(message: Mapping[str, Any], raw: str) -> list[ToolCall]:
    """The calls of a message; some servers give the object itself for arguments, or nothing for none."""
    calls = message.get("tool_calls") or ()
    pieces = _json.items(_json.inside(raw, "choices", 0, "message", "tool_calls") or "[]") if calls else ()
    return [_call(call, piece) for call, piece in zip(calls, pieces, strict=True)]


def _call(call: Mapping[str, Any], piece: str) -> ToolCall:
    arguments = call["function"].get("arguments")
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else _json.inside(piece, "function", "arguments") or ""
    return ToolCall(tool=call["function"]["name"], arguments=arguments, provider_id=str(call.get("id") or ""))


def _text(content: Any) -> str:
    """The text of a message, which some servers give in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


@functools.lru_cache(maxsize=2048)
def _kept(raw: str) -> tuple[msgspec.Raw, int] | None:
    """The message of a reply as it came, and how many calls are in it."""
    message = _json.inside(raw, "choices", 0, "message")
    if message is None:
        return None
    asked = _json.inside(message, "tool_calls") or "null"
    return _json.raw(message), 0 if asked == "null" else len(_json.items(asked))


def _rebuilt(turn: _turns.Theirs) -> dict[str, Any]:
    """A reply that another vendor wrote, or that is not to be repeated whole, from its text and calls."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.reply.text or None}
    if turn.reply.calls:
        message["tool_calls"] = [
            {"id": turn.ids[call.id], "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in turn.reply.calls
        ]
    return message
