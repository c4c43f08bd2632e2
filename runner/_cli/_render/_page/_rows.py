"""The rows of the page: what stands below each other in the story, and what each line of the log holds."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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


def weight(finding: Finding) -> str:
    """How much a finding matters: something is wrong, worth a look, or only good to know."""
    return "heavy" if finding.kind in HEAVY else "light" if finding.kind in LIGHT else "middle"


@dataclass
class Row:
    """One row of the story: a life's heading, an ask, or a call. Only what belongs to it is set."""

    id: str
    seq: int
    turn: int = 0
    life: LifeStory | None = None
    before: LifeStory | None = None
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
    pairs = zip(story.lives, [None, *story.lives], strict=False)
    lives = [Row(f"life-{life.life}", life.seq, life=life, before=before) for life, before in pairs][::-1]
    for row in _within(story):
        while lives and lives[-1].seq <= row.seq:
            yield lives.pop()
        yield row
    yield from reversed(lives)


def _within(story: Audit) -> Iterator[Row]:
    about: defaultdict[str | int, list[Finding]] = defaultdict(list)
    for finding in story.findings:
        about[finding.call if finding.call is not None else finding.seqs[0]].append(finding)
    turn, asks = 0, itertools.count()
    for each, waits in story.in_order():
        if isinstance(each, AskStory):
            turn = each.turn
            found = [finding for finding in about[each.seq] if finding.kind in ("lost-ask", "billed-failure")]
            yield Row(f"ask-{next(asks)}", each.seq, turn, ask=each, waits=waits, findings=found)
        else:
            yield Row(f"call-{each.id}", each.seq, turn, call=each, waits=waits, findings=about[each.id])


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
    type: object = "?"


_tagged = msgspec.json.Decoder(_Tagged)


def written(lines: Iterable[eventlog.Line]) -> Iterator[Written]:
    """Every line of the log, the header's too."""
    for line in lines:
        if line.header is not None:
            yield Written(line, "header", [msgspec.json.encode(line.header).decode()])
        else:
            tags = ", ".join(str(_tagged.decode(raw).type) for raw in line.events)
            yield Written(line, tags, [bytes(raw).decode() for raw in line.events])
