"""Messages of LangChain as the log tells them, and what a tool came to as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, messages_from_dict, messages_to_dict
from langgraph.types import Command, Send
from pydantic_core import to_jsonable_python

from replay.messages import Reply, Stop, ToolCall, Usage
from runner._agent import json_text
from runner.models._prices import Sale, cost

_CHANGES = {"id", "response_metadata", "usage_metadata", "artifact"}
"""Fields of a message that are others in each life, or that no model sees."""
_STOPS: Mapping[str, Stop] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}


def as_json(value: object) -> str:
    """A value of whatever type as JSON."""
    return json.dumps(to_jsonable_python(value, fallback=str))  # in its own order, which LangChain shows


def dump(message: BaseMessage) -> bytes:
    """What a message is known by."""
    return json.dumps([message.type, message.model_dump(exclude=_CHANGES)], sort_keys=True, default=str).encode()


def sale_of(model: Any, said: Mapping[str, Any]) -> Sale:
    """Who sold which model, as far as a request or a reply says so."""
    name = said.get("model_name") or getattr(model, "model_name", None) or getattr(model, "model", None) or ""
    return Sale(said.get("model_provider") or "", (str(name),), None)


def storable(response: Any) -> Any:
    """A model's response; where UTF-8 can't hold its messages, with such ones as come back from the log."""
    raw, whole = written(to_jsonable_python(messages_to_dict(response.result), fallback=str))
    if not whole:
        response.result = messages_from_dict(json.loads(raw))
    return response


def reply_of(messages: list[BaseMessage], model: Any) -> Reply:
    """A reply as the log tells it; `raw` are the framework's own messages. What is made of them is made again."""
    said = next((message for message in messages if isinstance(message, AIMessage)), AIMessage(""))
    used, about = said.usage_metadata, said.response_metadata
    details: Mapping[str, Any] = used.get("input_token_details", {}) if used else {}
    usage = Usage(
        input_tokens=used["input_tokens"] if used else 0,
        output_tokens=used["output_tokens"] if used else 0,
        cache_read_tokens=details.get("cache_read") or 0,
        cache_write_tokens=details.get("cache_creation") or 0,
    )
    sale = sale_of(model, about)
    stop = _STOPS.get(about.get("finish_reason") or about.get("stop_reason") or "")
    return Reply(
        text=str(said.text),
        calls=tuple(
            ToolCall(tool=call["name"], arguments=as_json(call["args"]), provider_id=call["id"] or "")
            for call in said.tool_calls
        ),
        usage=usage,
        dollars=cost(None, sale, usage, {}) if used else None,
        stop=stop or ("tool_calls" if said.tool_calls else "stop"),
        model=sale.models[0],
        raw=as_json(messages_to_dict(messages)),
    )


def text_of(made: Any) -> str:
    """What a reader of the log sees of a command: the messages in it."""
    update = made.update if isinstance(made, Command) else made
    messages = update.get("messages", []) if isinstance(update, Mapping) else []
    return "\n".join(str(m.text) for m in messages if isinstance(m, BaseMessage)) or "A command."


def written(value: Any) -> tuple[str, bool]:
    """A value as JSON that UTF-8 holds, and whether that says the same."""
    said = json.dumps(value, ensure_ascii=False)
    raw = json_text.without_surrogates(said)
    return raw, raw == said


def pack(made: Any) -> tuple[str, bool]:
    """What a tool came to, `written`: messages and commands are marked, all else is plain."""
    return written(packed(made))


def packed(value: Any) -> Any:  # noqa: PLR0911 (one for each kind)
    """A value of which each message and command is marked."""
    if isinstance(value, BaseMessage):
        try:
            return {"message": json.loads(json.dumps(messages_to_dict([value])[0]))}
        except (TypeError, ValueError):
            return {"message": to_jsonable_python(messages_to_dict([value.model_copy(update={"artifact": None})])[0])}
    if isinstance(value, Command):
        return {"command": {name: packed(getattr(value, name)) for name in ("graph", "update", "goto")}}
    if isinstance(value, Send):
        return {"send": [value.node, packed(value.arg)]}
    if isinstance(value, Mapping):
        return {"map": {str(key): packed(member) for key, member in value.items()}}
    if isinstance(value, list | tuple):
        return [packed(member) for member in value]
    plain = to_jsonable_python(value, fallback=str)
    return packed(plain) if isinstance(plain, dict | list) else plain  # an object may look like a mark of ours


def rebuilt(reply: Reply) -> BaseMessage:
    """What the model said; one that was too large to be kept as it came, of its text and its calls."""
    if reply.raw:
        return next(m for m in messages_from_dict(json.loads(reply.raw)) if isinstance(m, AIMessage))
    calls = [{"name": call.tool, "args": json.loads(call.arguments), "id": call.provider_id} for call in reply.calls]
    return AIMessage(reply.text, tool_calls=calls)


def unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [unpack(member) for member in value]
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "message":
        return messages_from_dict([inner])[0]
    if kind == "send":
        return Send(*unpack(inner))
    if kind == "command":
        return Command(**{name: unpack(member) for name, member in inner.items()})
    return {key: unpack(member) for key, member in inner.items()} if kind == "map" else value
