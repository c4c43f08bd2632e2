"""Retrace: walks a history with the current code, and names the first place where that would decide otherwise.

A line holds what came back, then what was decided. The retrace folds what came back, asks the current `decide` at the
time the line was written, and compares the two.

1. A *divergence* is another decision. Only the first is named: after it the history is no longer that of the current
   code. Deciding more or less than the history is a divergence too, and so is raising.
2. *Drift* is the same decision from changed parts: instructions, tools, messages, parameters, or the bound of a
   request. So is the same decision in other words: a sentence must not stay the same for ever because a history holds
   it.
3. A line without a decision is only folded: its process died, or something else came between.
4. Decisions that did not fit into one line stand in the next, unless the process died before it.

`decide` is an argument, so that replay does not depend on runner. It never acts: a retrace needs no model, no tool and
no lock.

Both sides of a divergence are kept as the JSON of events, because an event of a later version has no other form. A
difference is shown field by field, and line by line where a field holds several lines of text; of a digest only that it
changed.
"""

import difflib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from replay import _codec
from replay import events as e
from replay._event import EVENTS, Event
from replay._fold import Line, fold
from replay.errors import Diverged
from replay.state import NEW, State
from replay.values import Definitions

Decide = Callable[[State, datetime], Sequence[Event]]

LINE: Final = 8 << 20
"""The most bytes of events that share a line, unless one event alone has more."""
SHOWN = 300
"""The most characters of one value in a diff."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The same decision, made of a part that has changed.

    Attributes:
        seq: The line.
        tag: The event.
        part: `instructions`, `tools`, `messages`, `parameters` or `bound` of a request; `why`, `text` or `detail` where
            only the sentence differs; `tool NAME`, `instructions`, `parameters` or `context` of the definitions that a
            process began with.
        was: The digest, value or sentence in the history; empty for a tool.
        now: That of the current code; for a tool what it declares otherwise, in words, or that it is `new` or `gone`.
    """

    seq: int
    tag: str
    part: str
    was: str
    now: str

    @property
    def title(self) -> str:
        """What a person calls the decision, or `the agent` for its definitions."""
        return EVENTS[self.tag].title


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """The first place where the current code decides otherwise.

    Attributes:
        seq: The line.
        at: When it was written (UTC).
        was: What the history holds from there to the end of the line, as the JSON of events.
        now: What the current code would write instead, as the JSON of events.
        why: The difference as a sentence.
    """

    seq: int
    at: datetime
    was: tuple[str, ...]
    now: tuple[str, ...]
    why: str

    def diff(self) -> str:
        """Shows the differences, one a line: `-` is the history, `+` the current code."""
        return "\n".join(_differences([json.loads(text) for text in self.was], [json.loads(text) for text in self.now]))


class Retraced(msgspec.Struct, frozen=True, kw_only=True):
    """What a retrace found.

    Attributes:
        run: The run's id.
        seq: The last line that was compared.
        decisions: How many decisions were compared.
        drift: The same decisions from changed parts.
        divergence: The first other decision, or None.
    """

    run: str
    seq: int
    decisions: int
    drift: tuple[Drift, ...]
    divergence: Divergence | None

    def check(self) -> None:
        """Raises `Diverged`, which shows both sides, if there is a divergence. Meant for tests."""
        if self.divergence is not None:
            raise Diverged(self.run, self.divergence.seq, self.divergence.why, self.divergence.diff())


def retrace(lines: Iterable[Line], decide: Decide, *, definitions: Definitions | None = None) -> Retraced:
    """Compares a history with what the current code decides, up to the first divergence.

    Args:
        lines: The history, from the first line on.
        decide: The current code. What it raises is a divergence.
        definitions: What the current agent is made of. If given, it is compared with what each process began with, and
            what differs is drift.

    Raises:
        IllegalEvent, Undecodable: The history can't be folded.
    """
    state, seq, decisions = NEW, -1, 0
    drift: list[Drift] = []
    owed: list[Event] = []
    lines = list(lines)
    for line, after in zip(lines, [*lines[1:], None], strict=True):
        seq = line.seq
        events = [_codec.decode(raw, seq=seq) for raw in line.events]
        if definitions is not None:
            drift += (part for event in events for part in _defined(seq, event, definitions))
        first = 0 if owed else next((i for i, event in enumerate(events) if event.is_decision), len(events))
        before = fold(state, line.at, events[:first], seq=seq)
        was = [event for event in events[first:] if not (isinstance(event, e.UnknownEvent) and event.ignorable)]
        if was:
            now, raised = (owed, "") if owed else _decided_now(decide, before, line.at)
            found = raised or _compare(seq, was, now)
            rest = now[len(was) :]
            if rest and not isinstance(found, str) and not _is_split(line, after, rest[0]):
                found = f"the current code goes on with {rest[0].title}, the history with nothing"
            if isinstance(found, str):
                split = Divergence(seq=seq, at=line.at, was=_texts(was), now=_texts(now), why=found)
                return Retraced(run=state.run, seq=seq, decisions=decisions, drift=tuple(drift), divergence=split)
            drift += found
            decisions += sum(event.is_decision for event in was)
            owed = rest if after is not None and after.life == line.life else []
        state = replace(fold(before, line.at, events[first:], seq=seq), seq=seq, life=line.life, at=line.at)
    return Retraced(run=state.run, seq=seq, decisions=decisions, drift=tuple(drift), divergence=None)


def _decided_now(decide: Decide, state: State, at: datetime) -> tuple[list[Event], str]:
    """What the current code decides, and the sentence for what it raises instead."""
    try:
        return list(decide(state, at)), ""
    except Exception as error:  # noqa: BLE001 (the current code is what is compared: whatever it raises is its answer)
        return [], f"the current code raises {type(error).__name__}: {error}"


def _is_split(line: Line, after: Line | None, rest: Event) -> bool:
    """Whether `rest` is missing only because the line was full: it stands in the next, or the process died first."""
    if after is not None and after.life == line.life:
        held = [_codec.decode(raw, seq=after.seq) for raw in after.events[:1]]
        return bool(held) and not isinstance(_compare(after.seq, held, [rest]), str)
    return sum(len(memoryview(raw)) for raw in line.events) + len(_codec.encode(rest)) > LINE


def _texts(events: Sequence[e.AnyEvent]) -> tuple[str, ...]:
    return tuple(_codec.encode(event).decode() for event in events)


def _compare(seq: int, was: Sequence[e.AnyEvent], now: Sequence[Event]) -> list[Drift] | str:
    """The drift between two lists of decisions, or why they are not the same ones."""
    drift: list[Drift] = []
    for held, would in zip(was, now, strict=False):
        if type(held) is not type(would):
            return f"the history has {held.title}, the current code {would.title}"
        names = [f for f in held.__struct_fields__ if f != "rested" and getattr(held, f) != getattr(would, f)]
        if isinstance(held, e.ModelAsked) and isinstance(would, e.ModelAsked):
            drift += _asked(seq, held, would)
            names = [name for name in names if name not in ("digests", "bound")]
        elif names == [_words(held)]:
            was_said, now_said = (str(getattr(event, names[0])) for event in (held, would))
            drift.append(Drift(seq=seq, tag=_codec.tag(held), part=names.pop(), was=was_said, now=now_said))
        if names:
            return f"{held.title} differs in {', '.join(names)}"
    if len(now) < len(was):
        return f"the history goes on with {was[len(now)].title}, the current code with nothing"
    return drift


def _words(event: Event) -> str | None:
    """The field of this decision that only says why. A result that a person stated is no such text."""
    return None if isinstance(event, e.ResultRecorded) and event.how == "stated" else event.words


def _asked(seq: int, held: e.ModelAsked, would: e.ModelAsked) -> list[Drift]:
    if held.digests == would.digests and held.bound == would.bound:
        return []
    parts = [
        (part, getattr(held.digests, part), getattr(would.digests, part))
        for part in ("instructions", "tools", "messages", "parameters")
    ]
    was_bound, would_bound = (msgspec.json.encode(ask.bound).decode() for ask in (held, would))
    parts.append(("bound", was_bound, would_bound))
    return [Drift(seq=seq, tag="model_asked", part=p, was=was, now=now) for p, was, now in parts if was != now]


def _defined(seq: int, event: e.AnyEvent, now: Definitions) -> Iterator[Drift]:
    """The drift between what a life began with and the current definitions."""
    if not isinstance(event, e.RunStarted | e.RunResumed):
        return
    for part, was, would in event.definitions.changed(now):
        yield Drift(seq=seq, tag=_codec.tag(event), part=part, was=was, now=would)


def _differences(was: Sequence[dict[str, object]], now: Sequence[dict[str, object]]) -> Iterator[str]:
    for held, would in itertools.zip_longest(was, now):
        if held is not None and would is not None and held["type"] == would["type"]:
            for name in dict.fromkeys([*held, *would]):
                yield from _field(f"{_title(held)}, {name}", held.get(name), would.get(name))
        else:
            yield from (f"{sign} {_shown(event)}" for sign, event in (("-", held), ("+", would)) if event is not None)


def _title(event: Mapping[str, object]) -> str:
    tag = str(event["type"])
    return EVENTS[tag].title if tag in EVENTS else tag


def _shown(event: Mapping[str, object]) -> str:
    fields = {name: value for name, value in event.items() if name not in ("type", "digest", "digests")}
    return f"{_title(event)}: {_cut(json.dumps(fields, ensure_ascii=False))}"


def _field(name: str, was: object, now: object) -> Iterator[str]:
    if was == now:
        return
    if ", digest" in name and not isinstance(was, dict):  # two digests tell a person no more than that
        yield f"  {name}: changed"
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for part in dict.fromkeys([*was, *now]):
            yield from _field(f"{name}.{part}", was.get(part), now.get(part))
    elif isinstance(was, str) and isinstance(now, str) and "\n" in was + now:
        yield f"  {name}:"
        lines = difflib.unified_diff(was.split("\n"), now.split("\n"), lineterm="", n=1)
        yield from (_cut(line) for line in lines if not line.startswith(("---", "+++")))
    else:
        yield f"- {name}: {_cut(json.dumps(was, ensure_ascii=False))}"
        yield f"+ {name}: {_cut(json.dumps(now, ensure_ascii=False))}"


def _cut(text: str) -> str:
    """A line of a diff, cut, with control characters escaped: it is printed to terminals."""
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
