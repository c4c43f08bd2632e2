"""The rows of the page: what stands below each other in the story, and what each line of the log holds."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

import eventlog
from replay import AskStory, Audit, CallStory, Finding, LifeStory, WaitStory

HEAVY = frozenset({"damaged", "open", "salvaged", "unknown-event"})
LIGHT = frozenset({"approved", "intent-refused", "rerun", "settled-by-service", "torn"})

IMPLIED = frozenset({"approved", "intent-refused", "lost-ask", "refused", "settled-by-person", "settled-by-service"})
"""Findings that a row shows anyway, by what came of it."""

Weight = Literal["heavy", "middle", "light"]


def weight(finding: Finding) -> Weight:
    """How much a finding asks of whoever reads it: something is wrong, worth a look, or only good to know."""
    return "heavy" if finding.kind in HEAVY else "light" if finding.kind in LIGHT else "middle"


@dataclass
class Row:
    """One row of the story: a life's heading, an ask, or a call. Only what belongs to its kind is set."""

    kind: Literal["life", "ask", "call"]
    id: str
    turn: int = 0
    life: LifeStory | None = None
    before: LifeStory | None = None
    last: bool = False
    ask: AskStory | None = None
    call: CallStory | None = None
    waits: list[WaitStory] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def marks(self) -> list[Finding]:
        """The findings that the row itself is marked with, one of each kind."""
        return list({finding.kind: finding for finding in self.findings if finding.kind not in IMPLIED}.values())


def rows(story: Audit) -> Iterator[Row]:
    """The story in its order, each life's heading before the first row that it wrote."""
    ahead = list(enumerate(story.lives))
    for seq, row in _within(story):
        while ahead and ahead[0][1].seq <= seq:
            yield _life(story, *ahead.pop(0))
        yield row
    for index, life in ahead:
        yield _life(story, index, life)


def _life(story: Audit, index: int, life: LifeStory) -> Row:
    before = story.lives[index - 1] if index else None
    return Row("life", f"life-{life.life}", life=life, before=before, last=index == len(story.lives) - 1)


def _within(story: Audit) -> Iterator[tuple[int, Row]]:
    calls = {call.id: call for call in story.calls}
    waits: defaultdict[str, list[WaitStory]] = defaultdict(list)
    for wait in story.waits:
        before = bisect_right(story.asks, wait.seq, key=lambda ask: ask.seq) - 1
        waits[wait.call or f"ask-{before}"].append(wait)
    about: defaultdict[str | int, list[Finding]] = defaultdict(list)
    for finding in story.findings:
        about[finding.call if finding.call is not None else finding.seqs[0]].append(finding)
    for index, ask in enumerate(story.asks):
        name = f"ask-{index}"
        found = [finding for finding in about[ask.seq] if finding.kind in ("lost-ask", "billed-failure")]
        yield ask.seq, Row("ask", name, ask.turn, ask=ask, waits=waits[name], findings=found)
        for call in ask.calls:
            yield (
                calls[call].seq,
                Row("call", f"call-{call}", ask.turn, call=calls[call], waits=waits[call], findings=about[call]),
            )


@dataclass(frozen=True)
class Written:
    """One line of the log with its events as they stand there."""

    line: eventlog.Line
    tags: str
    events: list[str]


class _Tagged(msgspec.Struct):
    type: str = "?"


_tagged = msgspec.json.Decoder(_Tagged)


def written(lines: Iterable[eventlog.Line]) -> Iterator[Written]:
    """Every line of the log, the header's too."""
    for line in lines:
        if line.header is not None:
            yield Written(line, "header", [msgspec.json.encode(line.header).decode()])
        else:
            events = [bytes(raw) for raw in line.events]
            yield Written(line, ", ".join(_tag(raw) for raw in events), [raw.decode() for raw in events])


def _tag(raw: bytes) -> str:
    try:
        return _tagged.decode(raw).type
    except msgspec.MsgspecError:
        return "?"
