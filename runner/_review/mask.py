"""Masks events for an export, by what the types of their fields say (`replay.values.Text` and `Local`)."""

import contextlib
import functools
import json
from collections.abc import Sequence
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

import replay
from replay import AnyEvent, Event
from replay.events import QuestionAnswered, QuestionAsked, RunStarted, UnknownEvent
from runner._agent.redact import SecretPattern, redact


class Mask:
    """Masks events. It keeps the digest of what each question now shows, and the path of the workspace."""

    def __init__(self, patterns: Sequence[SecretPattern]) -> None:
        self.patterns = patterns
        self.digests: dict[str, str] = {}
        self.workspace = ""

    def event(self, raw: msgspec.Raw, seq: int) -> AnyEvent:
        """One event without what an export leaves out, its texts masked."""
        event = replay.decode(raw, seq=seq)
        if isinstance(event, UnknownEvent):
            fields = json.loads(event.raw)
            fields = {**redact(fields, self.patterns), "type": fields["type"]}
            return replace(event, raw=json.dumps(fields, ensure_ascii=False).encode())
        if isinstance(event, RunStarted):
            self.workspace = event.workspace or ""
        event = cast("Event", self._masked(event))
        if isinstance(event, QuestionAsked):
            self.digests[event.id] = replay.digest(event.arguments.encode())
            return replace(event, digest=self.digests[event.id])
        if isinstance(event, QuestionAnswered):
            new = replay.digest(event.arguments.encode()) if event.arguments is not None else ""
            return replace(event, digest=self.digests.get(event.id, event.digest), new_digest=new)
        return event

    def _masked(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._masked(member) for member in value)
        if isinstance(value, dict):
            return redact({key: self._masked(member) for key, member in value.items()}, self.patterns)
        if not isinstance(value, msgspec.Struct):
            return value
        hints = _hints(type(value))
        fields = {name: self._field(getattr(value, name), hints[name]) for name in value.__struct_fields__}
        return replace(value, **fields)

    def _field(self, value: Any, hint: Any) -> Any:
        mark = _mark(hint)
        if mark == "drop":
            return None if type(None) in get_args(get_args(hint)[0]) else type(value)()
        return self.text(value) if mark == "mask" and value is not None else self._masked(value)

    def text(self, text: str) -> str:
        """A text with its secrets masked. One that is JSON stays JSON; its names say which values are secret."""
        if len(self.workspace) > 1:
            text = text.replace(self.workspace, "workspace")
        if text[:1] in ("{", "["):
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(text)
                hidden = redact(value, self.patterns)
                return text if hidden == value else json.dumps(hidden, ensure_ascii=False)
        return redact(text, self.patterns)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _mark(hint: Any) -> str | None:
    """What an export does with a field of this type: `mask`, `drop`, or nothing."""
    for meta in getattr(hint, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.extra is not None:
            return str(meta.extra["export"])
    inner = get_args(hint) if get_origin(hint) in (UnionType, Union) else ()
    return next((mark for part in inner if (mark := _mark(part))), None)
