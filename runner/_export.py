"""Export: a run's history as a file that stands beside a test, to be retraced for ever.

The file holds what came back (replies, results, answers, times) and what was decided on it, one line for each save, and
nothing that the test does not need: no host, no process, no workspace's path, no vendor's raw reply. Secrets are
masked in it by default. A masked text has other digests and intents than the one that was there, so what today's agent
decides on the masked history is written in place of what was decided then; an export whose masks would change a
decision is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

import eventlog
import replay
from replay import AnyEvent, ModelAsked, QuestionAnswered, QuestionAsked, Retraced
from runner._agent import Agent
from runner._masks import SECRETS, masked
from runner._retrace import Walk, retrace_lines
from runner.errors import RunError

TEXTS = frozenset({"answer", "arguments", "by", "context", "detail", "error", "path", "task", "text", "who", "why"})
"""The fields of events that hold words of a model, a tool, a service or a person; all others are names and numbers."""
LEFT_OUT: dict[str, object] = {"host": "", "pid": 0, "raw": "", "workspace": None}
"""What no decision looks at, and what it becomes."""


class CannotExport(RunError):
    """With its secrets masked the history would be decided otherwise at line `seq`."""

    hint = "Two secrets became one, or a pattern hits what a tool needs; give other patterns."

    def __init__(self, run: str, seq: int | None, why: str) -> None:
        super().__init__(run, seq, why)
        self.run = run
        self.seq = seq
        self.why = why

    def __str__(self) -> str:
        return f"{self.run} can't be exported, its masked history goes another way at line {self.seq}: {self.why}"


class BadExport(RunError):
    """A file that is no export of a run."""

    hint = "Make it anew with `refold export`."

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path} is not an export of a run: {self.why}"


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an export: a save without its frame, or the header of a segment, which has no events."""

    seq: int
    life: int
    at: datetime
    events: list[msgspec.Raw]


def export(
    run: str, agent: Agent, *, runs: str | Path, patterns: Sequence[re.Pattern[str]] = SECRETS
) -> tuple[bytes, Retraced]:
    """The history of `run` as an export with `patterns` masked, and what a retrace of that with `agent` finds.

    A divergence that is there already stays where it is. Raises `CannotExport` when masking would change a decision,
    and what `retrace` raises.
    """
    lines = eventlog.read(Path(runs), run).lines
    there = retrace_lines(lines, agent).divergence
    try:
        left = list(_rewritten(lines, Walk(agent), Mask(patterns), there.seq if there is not None else None))
    except replay.IllegalEvent as error:
        raise CannotExport(run, error.seq, error.why) from error
    found = retrace_lines(left, agent)
    if found.divergence is not None and (there is None or found.divergence.seq != there.seq):
        raise CannotExport(run, found.divergence.seq, found.divergence.why)
    exported = [Exported(seq=line.seq, life=line.life, at=line.at, events=line.events) for line in left]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in exported), found


def retrace_export(path: str | Path, agent: Agent) -> Retraced:
    """`retrace`, for a history that `refold export` has put into a file.

    `.check()` on what this returns raises `replay.Diverged`, which shows the first place where today's agent decides
    otherwise. Raises `BadExport` when the file can't be read as an export.
    """
    try:
        raws = Path(path).read_bytes().split(b"\n")
        found = [msgspec.json.decode(raw, type=Exported) for raw in raws if raw]
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise BadExport(str(path), str(error)) from error
    if not any(line.events for line in found):
        raise BadExport(str(path), "it holds no events")
    lines = [eventlog.Line(line.seq, line.life, line.at, "", line.events, "") for line in found]
    return retrace_lines(lines, agent)


class Mask:
    """Masks events.

    It remembers the digest of what each question now shows, for its answer to cover, and the workspace's path.
    """

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        self.patterns = patterns
        self.digests: dict[str, str] = {}
        self.workspace = ""

    def event(self, raw: msgspec.Raw, seq: int) -> AnyEvent:
        """One event without what an export leaves out, its texts masked."""
        fields = json.loads(memoryview(raw).tobytes())
        if fields.get("type") == "run_started":
            self.workspace = fields.get("workspace") or ""
        event = replay.decode(json.dumps(self._member(fields, fields.get("type"))).encode(), seq=seq)
        if isinstance(event, QuestionAsked):
            self.digests[event.id] = replay.digest(event.arguments.encode())
            return replace(event, digest=self.digests[event.id])
        if isinstance(event, QuestionAnswered):
            return replace(event, digest=self.digests.get(event.id, event.digest))
        return event

    def _member(self, value: Any, kind: object) -> Any:
        if isinstance(value, list):
            return [self._member(member, kind) for member in value]
        if not isinstance(value, dict):
            return value
        return {name: self._field(name, member, kind) for name, member in value.items()}

    def _field(self, name: str, value: Any, kind: object) -> Any:
        if name in LEFT_OUT and not isinstance(value, dict | list):
            return LEFT_OUT[name]
        verdict = name == "answer" and kind == "question_answered"
        if isinstance(value, str):
            return self.text(value) if name in TEXTS and not verdict else value
        return self._member(value, kind)

    def text(self, text: str) -> str:
        """A text with what is secret masked; one that is JSON stays JSON, and its names say what stands behind them."""
        if len(self.workspace) > 1:
            text = text.replace(self.workspace, "workspace")
        if text[:1] in ("{", "["):
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                return masked(text, self.patterns)
            hidden = self._hidden("", value)
            return text if hidden == value else json.dumps(hidden, ensure_ascii=False)
        return masked(text, self.patterns)

    def _hidden(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._hidden(key, member) for key, member in value.items()}
        if isinstance(value, list):
            return [self._hidden(name, member) for member in value]
        if not isinstance(value, str):
            return value
        named = f"{name}="
        found = masked(named + value, self.patterns)
        return found.removeprefix(named) if found.startswith(named) else masked(value, self.patterns)


def _rewritten(lines: Iterable[eventlog.Line], walk: Walk, mask: Mask, end: int | None) -> Iterator[eventlog.Line]:
    """The masked lines, decided anew up to line `end`, behind which the history is no longer today's."""
    state = replay.NEW
    owed: list[replay.Event] = []
    for line in walk.along(lines):
        events = [mask.event(raw, line.seq) for raw in line.events]
        if end is None or line.seq < end:
            first = 0 if owed else next((i for i, e in enumerate(events) if replay.is_decision(e)), len(events))
            state = replay.fold(state, line.at, events[:first], seq=line.seq)
            if first < len(events):
                now = owed or list(walk.decide(state, line.at))
                events[first:], owed = _anew(events[first:], now), now[len(events) - first :]
            state = replace(replay.fold(state, line.at, events[first:], seq=line.seq), seq=line.seq, life=line.life)
        yield replace(line, events=[msgspec.Raw(replay.encode(event)) for event in events])


def _anew(was: Sequence[AnyEvent], now: Sequence[replay.Event]) -> list[AnyEvent]:
    """The decisions of a line as they are on masked texts. What an ask could cost stays: spend is counted by it."""
    anew = [
        replace(would, bound=held.bound) if isinstance(held, ModelAsked) and isinstance(would, ModelAsked) else would
        for held, would in zip(was, now, strict=False)
    ]
    return [*anew, *was[len(anew) :]]
