"""What a server wants to know from a person in the middle of a call, and how a run answers it.

The answer may take days, and this process may have ended by then, so nothing waits: the attempt ends, and what the
server asks becomes a question of the run. A person who answers it with `rerun` gives what the server asked for, as a
JSON object with the fields of its form (`decline` declines); the next attempt starts the call again under the same key
and answers from that object.

An answer is bound to what was shown: it counts only for a form with the same message, schema and link, whose digest
stands at the start of the question. Anything else that the server asks is cancelled and becomes a new question, however
alike it looks.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import mcp

from runner import NeedsPerson

DECLINE = "decline"
UNCLEAR = (
    "the server asked something while several of its calls were under way, without saying in which, and was told that "
    "nobody answers; with rerun this call starts again, alone, and what it asks then is put to you"
)
_PLAIN = (str, int, float, bool)


class Elicitation:
    """The questions of one attempt, answered from what a person said. `open` are those that have no answer yet.

    `unclear`: whether one was asked that may be another call's. `notes` are questions about the call as they were
    asked, each with what a person answered.
    """

    def __init__(self, notes: Sequence[tuple[str, str]]) -> None:
        self._said = {form: said for asked, said in notes for form in _shown(asked)}
        self._forms: list[str] = []
        self.open: list[str] = []
        self.unclear = False

    def asks(self) -> str:
        """What is open, as one question; it begins with the digests of the forms that an answer to it answers."""
        forms = f"[form{'s' if len(self._forms) > 1 else ''} {' '.join(self._forms)}] " if self._forms else ""
        return forms + "; ".join([*self.open, *([UNCLEAR] if self.unclear else [])])

    def form(self, params: Any) -> mcp.types.ElicitResult:
        """The answer to one form or link; `cancel`, which means "ask again later", when there is none yet."""
        said = self._said.get(digest(params), "")
        if said.strip() == DECLINE:
            return mcp.types.ElicitResult(action="decline")
        given = _object(said)
        schema = getattr(params, "requested_schema", None) or {}
        fields, required = schema.get("properties", {}), schema.get("required", [])
        if given is None or any(name not in given for name in required):
            self._forms.append(digest(params))
            self.open.append(question(params))
            return mcp.types.ElicitResult(action="cancel")
        content = {name: value for name, value in given.items() if name in fields and _fits(value)}
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


def digest(params: Any) -> str:
    """What a person is shown of a form or link, as 16 hex digits."""
    parts = [getattr(params, name, None) for name in ("message", "requested_schema", "url")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _shown(asked: str) -> list[str]:
    """The digests at the start of a question; a server's own words stand after them."""
    found = NeedsPerson.FORM.match(asked)
    return found[1].split() if found is not None else []


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


def _object(note: str) -> dict[str, Any] | None:
    try:
        found = json.loads(note)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
