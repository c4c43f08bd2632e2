"""Retrace: walk a history with today's code and name the first place where it would go another way (spec row 28).

A line holds what came back, then what was decided. The retrace folds what came back, asks today's `decide` at the time
the line was written, and compares the two. A *divergence* is another decision, named at the first place and only there:
behind it the history is no longer today's. *Drift* is the same decision from changed parts: instructions, tools,
messages, parameters, or the bound of an ask. A line without a decision is only folded.

`decide` is an argument, which is why no arrow runs from here to runner. It never acts, so a retrace needs no model, no
tool and no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from replay import _codec
from replay import _events as e
from replay._fold import Line, fold
from replay._state import NEW, State

Decide = Callable[[State, datetime], Sequence[e.Event]]

DECIDED_STOPS = frozenset({"TurnLimit", "TokenLimit", "DollarLimit", "ModelUnavailable"})
"""The stops that `decide` chooses; any other is an input: of a person, a signal, the workspace, a refused opening."""

_DECISIONS = (e.ModelAsked, e.AttemptMarked, e.LookupAsked, e.QuestionAsked, e.WaitUntil, e.PhaseChanged)


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The same decision from a changed part: `part` names it, `was` is the history's digest or value, `now` today's."""

    seq: int
    tag: str
    part: str
    was: str
    now: str


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first place where today's code decides otherwise.

    `was` is what the history holds from there to the line's end, `now` what would be written instead, both as JSON
    texts of events; `why` is a sentence.
    """

    seq: int
    at: datetime
    was: tuple[str, ...]
    now: tuple[str, ...]
    why: str


class Retraced(msgspec.Struct, frozen=True, kw_only=True):
    """What a retrace found: how many decisions were compared, the drift, and the divergence if there is one.

    `seq` is the last line walked.
    """

    run: str
    seq: int
    decisions: int
    drift: tuple[Drift, ...]
    divergence: Divergence | None


def is_decision(event: e.Any) -> bool:
    """Whether `decide` chose this event; every other one is an input that a retrace feeds."""
    if isinstance(event, e.ResultRecorded):
        return event.how not in ("ran", "found")
    if isinstance(event, e.RunStopped):
        return event.reason in DECIDED_STOPS
    return isinstance(event, _DECISIONS)


def retrace(lines: Iterable[Line], decide: Decide) -> Retraced:
    """Walk `lines` from the first to the last, or to the first divergence.

    Raises `IllegalEvent` or `Undecodable` when the history itself can't be folded, and whatever `decide` raises.
    """
    state, seq, decisions = NEW, -1, 0
    drift: list[Drift] = []
    owed: list[e.Event] = []
    for line in lines:
        seq = line.seq
        events = [_codec.decode(raw, seq=seq) for raw in line.events]
        first = 0 if owed else next((i for i, event in enumerate(events) if is_decision(event)), len(events))
        before = fold(state, line.at, events[:first], seq=seq)
        was = events[first:]
        if was:
            now = owed or list(decide(before, line.at))
            found = _compare(seq, was, now)
            if isinstance(found, str):
                held, would = (tuple(_codec.encode(x).decode() for x in side) for side in (was, now))
                split = Divergence(seq=seq, at=line.at, was=held, now=would, why=found)
                return Retraced(run=state.run, seq=seq, decisions=decisions, drift=tuple(drift), divergence=split)
            drift += found
            decisions += sum(is_decision(event) for event in was)
            owed = list(now[len(was) :])  # a line above its bound was split, and the next one holds the rest
        state = replace(fold(before, line.at, was, seq=seq), seq=seq, life=line.life, at=line.at)
    return Retraced(run=state.run, seq=seq, decisions=decisions, drift=tuple(drift), divergence=None)


def _compare(seq: int, was: Sequence[e.Any], now: Sequence[e.Event]) -> list[Drift] | str:
    """The drift between two lists of decisions, or why they are not the same ones."""
    drift: list[Drift] = []
    for held, would in zip(was, now, strict=False):
        if type(held) is not type(would):
            return f"the history has {_codec.tag(held)}, today's code writes {_codec.tag(would)}"
        if isinstance(held, e.ModelAsked) and isinstance(would, e.ModelAsked):
            drift += _asked(seq, held, would)
            same = replace(would, digests=held.digests, bound=held.bound) == held
        else:
            same = would == held
        if not same:
            names = [f for f in held.__struct_fields__ if getattr(held, f) != getattr(would, f)]
            return f"{_codec.tag(held)} differs in {', '.join(names)}"
    if len(now) < len(was):
        return f"the history goes on with {_codec.tag(was[len(now)])}, today's code with nothing"
    return drift


def _asked(seq: int, held: e.ModelAsked, would: e.ModelAsked) -> list[Drift]:
    parts = [
        (part, getattr(held.digests, part), getattr(would.digests, part))
        for part in ("instructions", "tools", "messages", "parameters")
    ]
    parts.append(("bound", _codec.encode_value(held.bound), _codec.encode_value(would.bound)))
    return [Drift(seq=seq, tag="model_asked", part=p, was=was, now=now) for p, was, now in parts if was != now]
