"""What a server wants to know from a person in the middle of a call, and how a run answers it.

A person may be away for days and this process may be gone by then, so nobody waits: the attempt ends, and what the
server asks becomes a question of the run. A person who answers it with `rerun` gives what the server asked for, as a
JSON object with the fields of its form (`decline` declines); the next attempt starts the call again under the same key
and answers from that object. When a server asks a second time, the object holds the fields of both forms.
"""

from __future__ import annotations

import json
from typing import Any

import mcp

DECLINE = "decline"
_PLAIN = (str, int, float, bool)


class Asking:
    """What was asked during one attempt. `told` is what a person said; `open` what nobody has answered yet."""

    def __init__(self, told: str) -> None:
        self._declines = told.strip() == DECLINE
        self._given = _object(told)
        self.open: list[str] = []

    def form(self, params: Any) -> mcp.types.ElicitResult:
        """The answer to one form or link; `cancel`, which means "ask again later", when there is none yet."""
        if self._declines:
            return mcp.types.ElicitResult(action="decline")
        schema = getattr(params, "requested_schema", None) or {}
        fields, required = schema.get("properties", {}), schema.get("required", [])
        if self._given is None or any(name not in self._given for name in required):
            self.open.append(question(params))
            return mcp.types.ElicitResult(action="cancel")
        content = {name: value for name, value in self._given.items() if name in fields and _fits(value)}
        is_form = getattr(params, "url", None) is None
        return mcp.types.ElicitResult(action="accept", content=content if is_form else None)

    def forms(self, requests: dict[str, Any]) -> dict[str, Any]:
        """The answers to what a leg asked for; what this client has not offered stays open."""
        answers = {}
        for name, request in requests.items():
            if request.method == "elicitation/create":
                answers[name] = self.form(request.params)
            else:
                self.open.append(f"the server wants {request.method}, which a run does not offer")
        return answers


def question(params: Any) -> str:
    """A form as a question to a person: the server's words, the fields it wants, and how to answer."""
    url = getattr(params, "url", None)
    if url is not None:
        return f"the server asks: {params.message} Open {url} and answer {{}} when that is done, or {DECLINE}"
    schema = getattr(params, "requested_schema", None) or {}
    required = schema.get("required", [])
    fields = ", ".join(
        f"{name} ({about.get('type', 'any')}{'' if name in required else ', optional'})"
        for name, about in schema.get("properties", {}).items()
    )
    wants = f"It wants a JSON object with {fields}" if fields else "It wants the JSON object {}"
    return f"the server asks: {params.message} {wants}, or {DECLINE}"


def _fits(value: object) -> bool:
    """Whether a form can hold it: the protocol's forms are flat."""
    if isinstance(value, list):
        return all(isinstance(member, str) for member in value)
    return value is None or isinstance(value, _PLAIN)


def _object(told: str) -> dict[str, Any] | None:
    try:
        found = json.loads(told)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
