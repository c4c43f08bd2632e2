"""What a retrace found: drift, and the first divergence with both of its sides.

Both sides are kept as the JSON of events, because an event of a later version has no other form. A difference is shown
field by field, and line by line where a field holds several lines of text; of a digest only that it changed.
"""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from replay._event import EVENTS
from replay.errors import Diverged

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
        was: The digest, value or sentence in the history; empty if there is none (the tool is new).
        now: That of the current code; empty if there is none (the tool is gone).
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


def _differences(was: Sequence[dict[str, object]], now: Sequence[dict[str, object]]) -> Iterator[str]:
    for place in range(max(len(was), len(now))):
        held = was[place] if place < len(was) else None
        would = now[place] if place < len(now) else None
        if held is None or would is None or held["type"] != would["type"]:
            if held is not None:
                yield f"- {_shown(held)}"
            if would is not None:
                yield f"+ {_shown(would)}"
        else:
            for name in dict.fromkeys([*held, *would]):
                yield from _field(f"{_title(held)}, {name}", held.get(name), would.get(name))


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
