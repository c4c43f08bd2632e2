"""Audit of a run on disk: the story that its lines tell, and what only the disk knows (spec row 27).

It takes no lock and needs neither agent nor model nor tool. Every line of every segment is read, whatever a snapshot
says. Where the log is damaged, or its events stop making a history, the story ends with the last line that holds, and a
finding says so: an auditor wants to know what can still be relied on, and up to where.

kind       what it says
damaged    the log, or the history in it, holds up to here and no further
salvaged   the log was copied from what was good of a damaged one; each gap is named
torn       a save that never finished was cut off, or still stands behind the last line
storage    what the log stood on may lose acknowledged lines in a power cut
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import eventlog
import replay
from replay import Audit, Finding

_EVIDENCE = re.compile(r"torn-([0-9]{6})-([0-9a-f]{64})")
_SEQ = re.compile(rb'\{"seq":([0-9]{1,18}),')


@dataclass(frozen=True)
class Audited:
    """What is known of a run. `story.findings` holds those of the disk too, in the order of their lines.

    `lines` are those the story was told from, header lines included, and `story.seq` is the last of them (-1: none).
    `problem` is why nothing behind it is told: `eventlog.LogDamaged`, or the `replay.ReplayError` that names the line.
    """

    run: str
    story: Audit
    lines: Sequence[eventlog.Line]
    storage: eventlog.Storage | None
    problem: eventlog.LogDamaged | replay.ReplayError | None


def audit(run: str, runs: str | Path) -> Audited:
    """Tell what a run did, live or not, damaged or not, and what an auditor would underline.

    Raises `eventlog.BadRunId`, `NoSuchRun`, `NotARunsDirectory`, `NewerFormat`, `DiskFailed`; damage is in the answer.
    """
    reading = eventlog.scan(runs, run)
    lines = reading.lines
    problem: eventlog.LogDamaged | replay.ReplayError | None = reading.damage
    try:
        story = replay.audit(lines)
    except replay.ReplayError as error:
        seq = getattr(error, "seq", None) or 0
        lines = lines[:seq]
        story, problem = replay.audit(lines), error
    found = [*_damage(problem, story.seq), *_header(lines), *_torn(reading, story, Path(runs) / run)]
    story.findings = sorted((*story.findings, *found), key=lambda finding: finding.seqs)
    return Audited(run, story, lines, reading.storage, problem)


def _damage(problem: Exception | None, seq: int) -> Iterator[Finding]:
    """Where it stops holding; the line that is named is the last one that does."""
    if problem is not None:
        holds = f"lines 0 to {seq} hold and are told here" if seq >= 0 else "no line of it holds"
        yield Finding(kind="damaged", seqs=(max(seq, 0),), says=f"{holds}; {problem}")


def _header(lines: Sequence[eventlog.Line]) -> Iterator[Finding]:
    header = lines[0].header if lines else None
    if header is None:
        return
    if header.storage.survives != "power loss":
        why = f": {header.storage.why}" if header.storage.why else ""
        says = f"on {header.storage.kind} the log survives a killed process, not surely a power cut{why}"
        yield Finding(kind="storage", seqs=(0,), says=says)
    if header.salvaged is not None:
        source = header.salvaged
        says = f"the log was salvaged from run {source.run}, of which {source.lines} lines could be read"
        yield Finding(kind="salvaged", seqs=(0,), says=says)
        for gap in source.gaps:
            upto = "" if gap.before is None else f" and before line {gap.before}"
            says = f"what came after line {gap.after}{upto} of run {source.run} is missing: {gap.why}"
            yield Finding(kind="salvaged", seqs=(0,), says=says)


def _torn(reading: eventlog.Reading, story: Audit, directory: Path) -> Iterator[Finding]:
    """Every save that never finished: the copies an opening made before it cut them, and what stands there now."""
    for path in sorted(directory.iterdir(), key=lambda path: path.name):
        named = _EVIDENCE.fullmatch(path.name)
        if named is None:
            continue
        data = _bytes(path)
        changed = "" if hashlib.sha256(data).hexdigest() == named[2] else "; the copy is not what was cut any more"
        seq = _seq(data, story)
        where = "" if seq is not None else ", before one of these lines"
        says = (
            f"a save that never finished, {len(data)} bytes, was cut from segment {int(named[1])}{where} and kept as "
            f"{path.name}; nothing acknowledged is missing{changed}"
        )
        yield Finding(kind="torn", seqs=_lives(story) if seq is None else (seq,), says=says)
    if reading.torn is not None:
        says = (
            f"behind it stand {reading.torn.size} bytes of a save that is being written, or never finished; the next "
            "opening keeps a copy and cuts them"
        )
        yield Finding(kind="torn", seqs=(max(story.seq, 0),), says=says)


def _bytes(path: Path) -> bytes:
    """The bytes of a copy; none of anything that is no plain file, which could make a reader wait."""
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
    except OSError:
        return b""


def _seq(data: bytes, story: Audit) -> int | None:
    """The line whose first try this was, where enough of it is left to say so."""
    named = _SEQ.match(data)
    return int(named[1]) if named and int(named[1]) <= story.seq else None


def _lives(story: Audit) -> tuple[int, ...]:
    """The lines with which the lives after the first began: a torn save lies before one of them."""
    return tuple(life.seq for life in story.lives[1:]) or (max(story.seq, 0),)
