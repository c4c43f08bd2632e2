"""What a retrace found, in shapes for whoever shows it: drift, and the one divergence with both sides of it.

Both sides are kept as JSON texts of events, because a later version's event has no other form. A difference is told
field by field, and line by line where a field holds text of several lines: a person must see at a glance what today's
code would do otherwise.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from replay.errors import Diverged

SHOWN = 300
"""The most characters of one value in a diff."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The same decision from a changed part.

    `part` names it: `instructions`, `tools`, `messages`, `parameters` or `bound` of an ask; `why`, `text` or `detail`
    where only the decider's own words differ; `tool NAME`, `instructions`, `parameters` or `context` of the definitions
    that a life began with. `was` is the history's digest, value or words, `now` today's; empty where there is none, as
    of a tool that is new or gone.
    """

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

    def diff(self) -> str:
        """Both sides against each other, one difference below the other: `-` is the history, `+` today's code."""
        return "\n".join(_differences([json.loads(text) for text in self.was], [json.loads(text) for text in self.now]))


class Retraced(msgspec.Struct, frozen=True, kw_only=True):
    """What a retrace found: how many decisions were compared, the drift, and the divergence if there is one.

    `seq` is the last line walked.
    """

    run: str
    seq: int
    decisions: int
    drift: tuple[Drift, ...]
    divergence: Divergence | None

    def check(self) -> None:
        """Raise `Diverged`, which shows both sides, if there is a divergence: for tests."""
        if self.divergence is not None:
            raise Diverged(self.run, self.divergence.seq, self.divergence.why, self.divergence.diff())


def _differences(was: Sequence[dict[str, object]], now: Sequence[dict[str, object]]) -> Iterator[str]:
    for place in range(max(len(was), len(now))):
        held = was[place] if place < len(was) else None
        would = now[place] if place < len(now) else None
        if held is None or would is None or held["type"] != would["type"]:
            if held is not None:
                yield f"- {_cut(json.dumps(held, ensure_ascii=False))}"
            if would is not None:
                yield f"+ {_cut(json.dumps(would, ensure_ascii=False))}"
        else:
            for name in dict.fromkeys([*held, *would]):
                yield from _field(f"{held['type']}.{name}", held.get(name), would.get(name))


def _field(name: str, was: object, now: object) -> Iterator[str]:
    if was == now:
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
    """A line of a diff: what a terminal would obey is written by its number, since it is printed wherever tests are."""
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
