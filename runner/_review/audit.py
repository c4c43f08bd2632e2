"""Audit of a run on disk: what its lines say, and what only the disk knows.

It takes no lock and needs no agent, model or tool. It reads every line of every segment, whatever a snapshot says.
Where the log is damaged, or an event is not legal, the story ends with the last good line, and a finding says so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import eventlog
import replay
from replay import Audit, Finding, State

_SEQ = re.compile(rb'\{"seq":([0-9]{1,18}),')


@dataclass(frozen=True)
class Audited:
    """What is known of a run.

    Attributes:
        run: Its id.
        story: What it did. Its findings are those of the disk too; its `seq` is the last good line (-1: none).
        state: Its state after that line.
        lines: The lines of the story, headers included.
        storage: What the log was created on.
        problem: Why the story ends there: `eventlog.LogDamaged`, or the `replay.ReplayError` that names the line.
        seen: What reads on from here.
    """

    run: str
    story: Audit
    state: State
    lines: Sequence[eventlog.Line]
    storage: eventlog.Storage | None
    problem: eventlog.LogDamaged | replay.ReplayError | None
    seen: object = field(default=None, repr=False, compare=False)


def audit(run: str, runs: eventlog.Runs, *, before: Audited | None = None) -> Audited:
    """Tells what a run did, running or not, damaged or not, and what deserves a second look.

    Args:
        run: The run.
        runs: Where the runs are: a path, a URL, or a store.
        before: An earlier audit of it by the same store, which is used up: only what was written since is read, and
            damage to what was read then is not seen.

    Raises:
        eventlog.LogError: There is no such run, or it can't be read at all; damage is in the answer.
    """
    if not isinstance(before, Audited | None):
        raise TypeError(f"before is {before!r:.200}, not an earlier audit")
    store = eventlog.store(runs)
    seen = before.seen if before is not None else None
    if not isinstance(seen, _Seen) or not seen.more():
        seen = _Seen(store, run)
    story = seen.teller.done()
    found = [*_damage(seen.problem, story.seq), *_header(seen.lines), *_torn(seen, story, store)]
    story.findings = sorted((*story.findings, *found, *_inbox(run, story, store)), key=lambda finding: finding.seqs)
    return Audited(run, story, seen.teller.state, seen.lines, seen.reading.storage, seen.problem, seen)


class _Seen:
    """A run that was read to some line, and what its story is up to there."""

    def __init__(self, store: eventlog.Store, run: str) -> None:
        self.reading = store.scan(run)
        self.problem: eventlog.LogDamaged | replay.ReplayError | None = self.reading.damage
        self.teller, self.lines = replay.Teller(), list[eventlog.Line]()
        self.torn = self.reading.torn
        try:
            self._take(self.reading.lines)
        except replay.ReplayError as error:
            self.problem, good = error, self.lines
            self.teller, self.lines = replay.Teller(), []
            self._take(good)
        self._tail = store.tail(self.reading) if self.problem is None else None

    def _take(self, lines: Sequence[eventlog.Line]) -> None:
        for line in lines:
            self.teller.line(line)
            self.lines.append(line)

    def more(self) -> bool:
        """Read on; False when the run must be read anew."""
        if self._tail is None or (found := self._tail.more()) is None or self._tail.torn:
            return False
        self.torn = None if found else self.torn
        try:
            self._take(found)
        except replay.ReplayError:
            return False
        return True


def _damage(problem: Exception | None, seq: int) -> Iterator[Finding]:
    """The finding about damage. It names the last good line."""
    if problem is not None:
        good = f"lines 0 to {seq} are good and stand here" if seq >= 0 else "no line of it is good"
        yield Finding(kind="damaged", seqs=(max(seq, 0),), says=f"{good}; {problem}")


def _header(lines: Sequence[eventlog.Line]) -> Iterator[Finding]:
    header = lines[0].header if lines else None
    if header is None:
        return
    if header.storage.survives != "power loss":
        why = f": {header.storage.why}" if header.storage.why else ""
        says = f"on {header.storage.kind} the log survives a killed process, but perhaps not a power cut{why}"
        yield Finding(kind="storage", seqs=(0,), says=says)
    if header.salvaged is not None:
        source = header.salvaged
        says = f"the log was salvaged from run {source.run}, of which {source.lines} lines could be read"
        yield Finding(kind="salvaged", seqs=(0,), says=says)
        for gap in source.gaps:
            upto = "" if gap.before is None else f" and before line {gap.before}"
            says = f"what came after line {gap.after}{upto} of run {source.run} is missing: {gap.why}"
            yield Finding(kind="salvaged", seqs=(0,), says=says)


def _inbox(run: str, story: Audit, store: eventlog.Store) -> Iterator[Finding]:
    """What lies in the inbox: requests that nobody took yet, and what is none."""
    requests, strangers = store.inbox(run)
    told = [f"{name} waits in the inbox to be taken" for name in requests]
    told += [f"{name} lies in the inbox and is no request" for name in strangers]
    yield from (Finding(kind="inbox", seqs=(max(story.seq, 0),), says=says) for says in told)


def _torn(seen: _Seen, story: Audit, store: eventlog.Store) -> Iterator[Finding]:
    """Every save that never finished: the copies made before they were cut off, and what stands there now."""
    for copy in store.torn(seen.reading.run):
        changed = "" if copy.intact else "; the copy has changed since"
        named = _SEQ.match(copy.data)  # the line that was being saved, if enough of it is left to say so
        seq = int(named[1]) if named and int(named[1]) <= story.seq else None
        where = "" if seq is not None else ", before one of these lines"
        says = (
            f"a save that never finished, {len(copy.data)} bytes, was cut off segment {copy.segment}{where} and kept "
            f"as {copy.file}; nothing acknowledged is missing{changed}"
        )
        lives = tuple(life.seq for life in story.lives[1:]) or (max(story.seq, 0),)  # it came before one of them
        yield Finding(kind="torn", seqs=lives if seq is None else (seq,), says=says)
    if seen.torn is not None:
        says = (
            f"after it stand {seen.torn.size} bytes of a save that is being written or never finished; the next "
            "resume keeps a copy and cuts them off"
        )
        yield Finding(kind="torn", seqs=(max(story.seq, 0),), says=says)
