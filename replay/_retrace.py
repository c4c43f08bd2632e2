"""Retrace: walk a history with today's code and name the first place where it would go another way (spec row 28).

A line holds what came back, then what was decided. The retrace folds what came back, asks today's `decide` at the time
the line was written, and compares the two.

1. A *divergence* is another decision, named at the first place and only there: behind it the history is no longer
   today's. Deciding more or less than the history is one too, and so is raising.
2. *Drift* is the same decision from changed parts: instructions, tools, messages, parameters, or the bound of an ask;
   or in other words, where the words are the decider's own (`WORDS`): a sentence must not be frozen for ever because
   some history holds it.
3. A line without a decision is only folded: its process died, or something else came between.
4. Decisions that did not fit into one line stand in the next, unless the process died before it.

`decide` is an argument, which is why no arrow runs from here to runner. It never acts, so a retrace needs no model, no
tool and no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from replay import _codec
from replay import _events as e
from replay._divergence import Divergence, Drift, Retraced
from replay._fold import Line, fold
from replay._state import NEW, State
from replay._values import Definitions

Decide = Callable[[State, datetime], Sequence[e.Event]]

LINE: Final = 8 << 20
"""The most bytes of events that share a line, unless one event alone has more."""

DECIDED_STOPS = frozenset({"TurnLimit", "TokenLimit", "DollarLimit", "ModelUnavailable"})
"""The stops that `decide` chooses; any other is an input: of a person, a signal, the workspace, a refused opening."""

WORDS: Final[dict[type[e.Event], str]] = {e.QuestionAsked: "why", e.ResultRecorded: "text", e.RunStopped: "detail"}
"""The field of a decision that only says why. The text of a result is one where nothing ran, and no person gave it."""

_DECISIONS = (e.ModelAsked, e.AttemptMarked, e.LookupAsked, e.QuestionAsked, e.WaitUntil, e.PhaseChanged)


def is_decision(event: e.Any) -> bool:
    """Whether `decide` chose this event; every other one is an input that a retrace feeds."""
    if isinstance(event, e.ResultRecorded):
        return event.how not in ("ran", "found")
    if isinstance(event, e.RunStopped):
        return event.reason in DECIDED_STOPS
    return isinstance(event, _DECISIONS)


def retrace(lines: Iterable[Line], decide: Decide, *, definitions: Definitions | None = None) -> Retraced:
    """Walk `lines` from the first to the last, or to the first divergence.

    With today's `definitions`, those that a life began with are compared as well, and what differs is drift.
    Raises `IllegalEvent` or `Undecodable` when the history itself can't be folded. Nothing that `decide` raises gets
    out: it is a divergence.
    """
    state, seq, decisions = NEW, -1, 0
    drift: list[Drift] = []
    owed: list[e.Event] = []
    for line, after in _with_next(lines):
        seq = line.seq
        events = [_codec.decode(raw, seq=seq) for raw in line.events]
        if definitions is not None:
            drift += (part for event in events for part in _defined(seq, event, definitions))
        first = 0 if owed else next((i for i, event in enumerate(events) if is_decision(event)), len(events))
        before = fold(state, line.at, events[:first], seq=seq)
        was = [event for event in events[first:] if not (isinstance(event, e.Unknown) and event.ignorable)]
        if was:
            now, raised = (owed, "") if owed else _asked_today(decide, before, line.at)
            found = raised or _compare(seq, was, now)
            rest = now[len(was) :]
            if rest and not isinstance(found, str) and not _is_split(line, after, rest[0]):
                found = f"today's code goes on with {_codec.tag(rest[0])}, the history with nothing"
            if isinstance(found, str):
                split = Divergence(seq=seq, at=line.at, was=_texts(was), now=_texts(now), why=found)
                return Retraced(run=state.run, seq=seq, decisions=decisions, drift=tuple(drift), divergence=split)
            drift += found
            decisions += sum(is_decision(event) for event in was)
            owed = rest if after is not None and after.life == line.life else []
        state = replace(fold(before, line.at, events[first:], seq=seq), seq=seq, life=line.life, at=line.at)
    return Retraced(run=state.run, seq=seq, decisions=decisions, drift=tuple(drift), divergence=None)


def _with_next(lines: Iterable[Line]) -> Iterator[tuple[Line, Line | None]]:
    """Each line with the one behind it; None behind the last."""
    walk = iter(lines)
    line = next(walk, None)
    while line is not None:
        after = next(walk, None)
        yield line, after
        line = after


def _asked_today(decide: Decide, state: State, at: datetime) -> tuple[list[e.Event], str]:
    """What today's code decides, and the sentence for what it raises instead."""
    try:
        return list(decide(state, at)), ""
    except Exception as error:  # noqa: BLE001 (today's code is what is on trial: whatever it raises is its answer)
        return [], f"today's code raises {type(error).__name__}: {error}"


def _is_split(line: Line, after: Line | None, rest: e.Event) -> bool:
    """Whether `rest` is missing only because the line was full: it stands in the next, or the process died first."""
    if after is not None and after.life == line.life:
        held = [_codec.decode(raw, seq=after.seq) for raw in after.events[:1]]
        return bool(held) and not isinstance(_compare(after.seq, held, [rest]), str)
    return sum(len(memoryview(raw)) for raw in line.events) + len(_codec.encode(rest)) > LINE


def _texts(events: Sequence[e.Any]) -> tuple[str, ...]:
    return tuple((event.raw if isinstance(event, e.Unknown) else _codec.encode(event)).decode() for event in events)


def _compare(seq: int, was: Sequence[e.Any], now: Sequence[e.Event]) -> list[Drift] | str:
    """The drift between two lists of decisions, or why they are not the same ones."""
    drift: list[Drift] = []
    for held, would in zip(was, now, strict=False):
        if type(held) is not type(would):
            return f"the history has {_codec.tag(held)}, today's code writes {_codec.tag(would)}"
        names = [f for f in held.__struct_fields__ if getattr(held, f) != getattr(would, f)]
        if isinstance(held, e.ModelAsked) and isinstance(would, e.ModelAsked):
            drift += _asked(seq, held, would)
            names = [name for name in names if name not in ("digests", "bound")]
        elif names == [_words(held)]:
            was_said, now_said = (str(getattr(event, names[0])) for event in (held, would))
            drift.append(Drift(seq=seq, tag=_codec.tag(held), part=names.pop(), was=was_said, now=now_said))
        if names:
            return f"{_codec.tag(held)} differs in {', '.join(names)}"
    if len(now) < len(was):
        return f"the history goes on with {_codec.tag(was[len(now)])}, today's code with nothing"
    return drift


def _words(event: e.Event) -> str | None:
    """The field of this decision that holds nothing but the decider's own words."""
    if isinstance(event, e.ResultRecorded) and event.how not in ("invalid", "refused", "failed"):
        return None
    return WORDS.get(type(event))


def _asked(seq: int, held: e.ModelAsked, would: e.ModelAsked) -> list[Drift]:
    if held.digests == would.digests and held.bound == would.bound:
        return []
    parts = [
        (part, getattr(held.digests, part), getattr(would.digests, part))
        for part in ("instructions", "tools", "messages", "parameters")
    ]
    parts.append(("bound", _codec.encode_value(held.bound), _codec.encode_value(would.bound)))
    return [Drift(seq=seq, tag="model_asked", part=p, was=was, now=now) for p, was, now in parts if was != now]


def _defined(seq: int, event: e.Any, now: Definitions) -> Iterator[Drift]:
    """The drift between what a life began with and today's definitions."""
    if not isinstance(event, e.RunStarted | e.RunResumed) or event.definitions == now:
        return
    was = event.definitions
    pairs = [(part, getattr(was, part), getattr(now, part)) for part in ("instructions", "parameters", "context")]
    pairs += [
        (f"tool {name}", was.tools.get(name, ""), now.tools.get(name, ""))
        for name in sorted(was.tools.keys() | now.tools.keys())
    ]
    yield from (
        Drift(seq=seq, tag=_codec.tag(event), part=part, was=held, now=would)
        for part, held, would in pairs
        if held != would
    )
