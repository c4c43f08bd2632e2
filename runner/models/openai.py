"""OpenAI: the Responses API, and Chat Completions (`_chat`), which many other servers speak too.

    from runner.models import openai

    openai.Responses("gpt-6-sol")
    openai.Chat("qwen3", base_url="http://localhost:8000/v1")

`runner.Agent(parameters=...)` passes through, for example `{"reasoning": {"effort": "low"}}`.

Nothing is stored at OpenAI: the log is the conversation, so `store` is off and reasoning comes encrypted; every output
item goes back as it came. A response is complete only when its `status` says so; streamed, it is the one that
`response.completed` carries.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replay.messages import ToolCall
from runner._agent.model import Request, ToolSpec
from runner.models import _errors, _json, _turns
from runner.models._chat import Chat, OpenAI
from runner.models._pieces import Assembly
from runner.models._vendor import Parsed, terms, texts, usage

__all__ = ["Chat", "Responses"]

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass
class _Stream(Assembly):
    """Its last event carries the whole response."""

    _response: str = ""

    def take(self, data: str) -> bool:
        event = _json.fields(data)
        kind = _json.value(event["type"])
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self.tell(_json.value(event["delta"]))
        elif kind == "response.output_item.added" and _json.inside(event["item"], "type") == '"function_call"':
            name = _json.value(_json.inside(event["item"], "name") or "null")
            self.calls[event["output_index"]] = len(self.calls), name
        elif kind == "response.function_call_arguments.delta" and event["output_index"] in self.calls:
            self.tell(_json.value(event["delta"]), *self.calls[event["output_index"]])
        elif kind == "error":
            raise _errors.said(data)
        elif kind in ENDS:
            self._response, self.done = event["response"], True
        return self.done

    def _reply(self) -> str:
        return self._response


class Responses(OpenAI):
    """A model over the Responses API. It needs the extra `openai`.

    A model without reasoning needs `parameters={"include": []}`.
    """

    limits = ("max_output_tokens",)
    path = "/responses"
    conversation = "input"
    schema = "text"
    taken = frozenset({"instructions"})
    assembly = _Stream

    def _head(self, request: Request, given: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {"max_output_tokens": self._max_tokens, "store": False}
        if not given.get("store"):
            fields["include"] = ["reasoning.encrypted_content"]
        if request.instructions:
            fields["instructions"] = request.instructions
        return fields

    def _held(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"format": {"type": "json_schema", "name": "output", "strict": True, "schema": schema}}

    def _tool(self, tool: ToolSpec) -> dict[str, Any]:
        named = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        return {"type": "function", **named, "strict": False}

    def _messages(self, request: Request) -> Iterator[Any]:
        for turn in _turns.turns(request, lambda raw: _turns.kept(raw, "output", "function_call")):
            if isinstance(turn, _turns.Theirs):
                yield from _rebuilt(turn) if turn.kept is None else turn.kept
                continue
            for call, result in turn.results:
                images = [{"type": "input_image", "image_url": url} for url in _turns.images(result)]
                output = [{"type": "input_text", "text": result.text}, *images] if images else result.text
                yield {"type": "function_call_output", "call_id": call, "output": output}
            for text in turn.texts:
                yield {"role": "user", "content": text}

    def _read(self, reply: Any, raw: str) -> Parsed:
        status = reply.get("status")
        if status == "failed" or (status is None and reply.get("error")):
            raise _errors.said(raw)
        if status not in ("completed", "incomplete"):
            raise _errors.incomplete(f"the reply's status is {status}: it is not complete")
        items = reply["output"]
        calls = [
            ToolCall(tool=item["name"], arguments=item["arguments"], provider_id=item["call_id"])
            for item in items
            if item["type"] == "function_call"
        ]
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        stop = "tool_calls" if calls else "refusal" if refusals else "stop"
        if status == "incomplete":
            why = (reply.get("incomplete_details") or {}).get("reason")
            stop = "refusal" if why == "content_filter" else "length"
        return Parsed(
            text=texts(part.get("text") for part in parts if part["type"] == "output_text") or texts(refusals),
            calls=calls,
            stop=stop,
            usage=usage(reply, "input_tokens", "output_tokens"),
            more={"web_searches": sum(item["type"] == "web_search_call" for item in items)},
            terms=terms(reply, "service_tier"),
        )


def _rebuilt(turn: _turns.Theirs) -> Iterator[dict[str, Any]]:
    """A reply that another vendor wrote, or that is not to be repeated whole, from its text and calls."""
    if turn.reply.text:
        yield {"role": "assistant", "content": turn.reply.text}
    for call in turn.reply.calls:
        yield {"type": "function_call", "call_id": turn.ids[call.id], "name": call.tool, "arguments": call.arguments}
