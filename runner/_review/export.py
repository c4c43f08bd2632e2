"""Export: the history of a run as a file beside a test, which retraces it from then on.

The file holds what came back (replies, results, answers, times) and what was decided, one line for each save, and
nothing that the test does not need: no host, no process, no path of a workspace, no raw reply of a vendor. Secrets are
masked. A masked text has other digests and intents, so what the current agent decides on the masked history is written
in place of what was decided then. An export whose masks would change a decision is refused.
"""

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

import eventlog
import replay
from replay import AnyEvent, Event, Retraced, State
from replay.events import ModelAsked, QuestionAnswered, QuestionAsked, RunStarted, UnknownEvent
from runner._agent import agent_tool, plain
from runner._agent.agent import Agent, AnyAgent
from runner._agent.redact import SECRET_PATTERNS, SecretPattern, redact
from runner._review.retrace import Walk, retrace_lines
from runner.errors import BadAgent, RunError


class CannotExport(RunError):
    """With its secrets masked, the history would be decided otherwise at line `seq`."""

    sentence = "{run} can't be exported, its masked history goes another way at line {seq}: {why}"
    hint = "Two secrets became one, or a pattern hits what a tool needs; give other patterns."
    run: str
    seq: int | None
    why: str


class BadExport(RunError):
    """A file that is no export of a run."""

    sentence = "{path} is not an export of a run: {why}"
    hint = "Make it anew with `refold export`."
    path: str
    why: str


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an export: the events of a save, or none for the header of a segment."""

    seq: int
    life: int
    at: datetime
    events: list[msgspec.Raw]


class Mask:
    """Masks events, by what the types of their fields say (`replay.values.Text` and `Local`).

    It keeps the digest of what each question now shows, and the path of the workspace.
    """

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
            self.digests[event.id] = event.digest
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
        if isinstance(value, QuestionAsked):  # also one of a child, of which its parent's log tells
            fields["digest"] = replay.digest(fields["arguments"].encode())
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


def export(
    run: str, agent: AnyAgent, *, runs: eventlog.Runs, patterns: Sequence[SecretPattern] = SECRET_PATTERNS
) -> tuple[bytes, Retraced]:
    """Exports the history of a run with its secrets masked. A divergence that is there already stays where it is.

    Args:
        run: The run.
        agent: The current agent.
        runs: Where the runs are: a path, a URL, or a store.
        patterns: What is masked, beside what the agent's tools declare as secret.

    Returns:
        The bytes of the export, and what a retrace of it finds.

    Raises:
        CannotExport: Masking would change a decision.
        BadAgent: It is no agent, or the run is that of a program with a loop of its own.
        eventlog.LogError, replay.ReplayError: The run can't be read.
    """
    agent_tool.check(agent=agent)
    if agent.framework:
        raise BadAgent(f"{run} is the run of a program, which would run on masked words: retrace it where its log is")
    declared = plain.patterns(tuple(secret for tool in agent.tools for secret in tool.secret))
    lines = eventlog.store(runs).read(run).lines
    there = retrace_lines(lines, agent).divergence
    try:
        left = list(
            _rewritten(lines, Walk(agent), Mask((*patterns, *declared)), there.seq if there is not None else None)
        )
    except replay.IllegalEvent as error:
        raise CannotExport(run, error.seq, error.why) from error
    found = retrace_lines(left, agent)
    if found.divergence is not None and (there is None or found.divergence.seq != there.seq):
        raise CannotExport(run, found.divergence.seq, found.divergence.why)
    exported = [Exported(seq=line.seq, life=line.life, at=line.at, events=line.events) for line in left]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in exported), found


def retrace_export(path: str | Path, agent: AnyAgent | Callable[[State], AnyAgent]) -> Retraced:
    """`retrace`, for a history that `refold export` has put into a file; `agent` may be a function of its last state.

    Returns:
        What a retrace finds; its `.check()` raises `replay.Diverged`, which shows the first other decision.

    Raises:
        BadExport: The file can't be read as an export.
        BadAgent: It is no agent, or the function makes none.
    """
    try:
        raws = Path(path).read_bytes().split(b"\n")
        found = [msgspec.json.decode(raw, type=Exported) for raw in raws if raw]
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise BadExport(str(path), str(error)) from error
    if not any(line.events for line in found):
        raise BadExport(str(path), "it holds no events")
    lines = [eventlog.Line(line.seq, line.life, line.at, "", line.events, "") for line in found]
    if callable(agent) and not isinstance(agent, Agent):
        agent = agent(replay.load(lines))
    return retrace_lines(lines, agent)


def _rewritten(lines: Iterable[eventlog.Line], walk: Walk, mask: Mask, end: int | None) -> Iterator[eventlog.Line]:
    """The masked lines, decided again up to line `end`: after it the history is not that of the current code."""
    state = replay.NEW
    owed: list[replay.Event] = []
    for line in walk.along(lines):
        events = [mask.event(raw, line.seq) for raw in line.events]
        if end is None or line.seq < end:
            first = 0 if owed else next((i for i, e in enumerate(events) if e.is_decision), len(events))
            state = replay.fold(state, line.at, events[:first], seq=line.seq)
            if first < len(events):
                now = owed
                with contextlib.suppress(Exception):  # whatever it raises, the retrace of what is left says so
                    now = now or list(walk.decide(state, line.at))
                events[first:], owed = _anew(events[first:], now), now[len(events) - first :]
            state = replace(replay.fold(state, line.at, events[first:], seq=line.seq), seq=line.seq, life=line.life)
        yield replace(line, events=[msgspec.Raw(replay.encode(event)) for event in events])


def _anew(was: Sequence[AnyEvent], now: Sequence[replay.Event]) -> list[AnyEvent]:
    """The decisions of a line on masked texts. The bound of a request stays: spend is counted by it."""
    anew = [
        replace(would, bound=held.bound) if isinstance(held, ModelAsked) and isinstance(would, ModelAsked) else would
        for held, would in zip(was, now, strict=False)
    ]
    return [*anew, *was[len(anew) :]]
