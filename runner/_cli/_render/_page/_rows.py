"""The rows of the page: what stands below each other in the story, and what each line of the log holds."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

import eventlog
from replay import Audit, Finding
from replay.stories import AskStory, CallStory, LifeStory, WaitStory

HEAVY = frozenset({"damaged", "in-doubt", "salvaged", "unknown-event"})
LIGHT = frozenset({"approved", "intent-refused", "rerun", "settled-by-service", "torn", "workspace-moved"})

IMPLIED = frozenset({"approved", "intent-refused", "lost-ask", "refused", "settled-by-person", "settled-by-service"})
"""Findings that a row shows anyway, by what came of it."""

PART = 200
"""Lines of the log on a page that does not show all of them."""

Weight = Literal["heavy", "middle", "light"]


def weight(finding: Finding) -> Weight:
    """How much a finding matters: something is wrong, worth a look, or only good to know."""
    return "heavy" if finding.kind in HEAVY else "light" if finding.kind in LIGHT else "middle"


@dataclass
class Row:
    """One row of the story: a life's heading, an ask, or a call. Only what belongs to its kind is set."""

    kind: Literal["life", "ask", "call"]
    id: str
    seq: int
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
    for row in _within(story):
        while ahead and ahead[0][1].seq <= row.seq:
            yield _life(story, *ahead.pop(0))
        yield row
    for index, life in ahead:
        yield _life(story, index, life)


def _life(story: Audit, index: int, life: LifeStory) -> Row:
    before = story.lives[index - 1] if index else None
    return Row("life", f"life-{life.life}", life.seq, life=life, before=before, last=index == len(story.lives) - 1)


def _within(story: Audit) -> Iterator[Row]:
    about: defaultdict[str | int, list[Finding]] = defaultdict(list)
    for finding in story.findings:
        about[finding.call if finding.call is not None else finding.seqs[0]].append(finding)
    turn, asks = 0, itertools.count()
    for each, waits in story.in_order():
        if isinstance(each, AskStory):
            turn = each.turn
            found = [finding for finding in about[each.seq] if finding.kind in ("lost-ask", "billed-failure")]
            yield Row("ask", f"ask-{next(asks)}", each.seq, turn, ask=each, waits=waits, findings=found)
        else:
            yield Row("call", f"call-{each.id}", each.seq, turn, call=each, waits=waits, findings=about[each.id])


def part(found: Sequence[Row], near: str, lines: int) -> range:
    """The lines that a page shows which shows `PART` at most: around the element of this id, or else the last ones."""
    seqs = {row.id: row.seq for row in found}
    wanted = int(near[5:]) if re.fullmatch(r"line-\d{1,9}", near) else seqs.get(near, lines)
    first = max(min(wanted - PART // 2, lines - PART), 0)
    return range(first, min(first + PART, lines))


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
