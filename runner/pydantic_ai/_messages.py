"""Messages of pydantic-ai as the log tells them: what a request is known by, and a reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import to_json

from replay.messages import Reply, Stop, ToolCall, Usage
from runner.models._prices import Sale, cost

_CHANGES = ("timestamp", "run_id", "conversation_id", "instructions")
"""Fields of a message that are others in each life, or are instructions."""
_STOPS: Mapping[str, Stop] = {
    "stop": "stop",
    "tool_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}


def dump(message: Any) -> bytes:
    """What a message is known by: without instructions, and without what is another in each life."""
    (plain,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    kept = {name: value for name, value in plain.items() if name not in _CHANGES}
    parts = [part for part in plain["parts"] if part["part_kind"] != "system-prompt"]
    kept["parts"] = [{k: v for k, v in part.items() if k not in _CHANGES} for part in parts]
    return to_json(kept)


def reply_of(payload: Mapping[str, Any]) -> Reply:
    """A model's response as the log tells it; `raw` is the framework's own."""
    parts, used = payload["parts"], payload.get("usage") or {}
    calls = tuple(
        ToolCall(
            tool=part["tool_name"],
            arguments=part["args"] if isinstance(part["args"], str) else json.dumps(part["args"] or {}),
            provider_id=part["tool_call_id"],
        )
        for part in parts
        if part["part_kind"] == "tool-call"
    )
    usage = Usage(**{name: used.get(name) or 0 for name in Usage.__struct_fields__})
    seller = payload.get("provider_name") or payload.get("provider_url") or ""
    model = payload.get("model_name") or ""
    return Reply(
        text="".join(part["content"] for part in parts if part["part_kind"] == "text"),
        calls=calls,
        usage=usage,
        dollars=cost(None, Sale(seller, (model,), None), usage, {}),
        stop=_STOPS.get(payload.get("finish_reason") or "", "tool_calls" if calls else "stop"),
        model=model,
        raw=json.dumps(payload),
    )
