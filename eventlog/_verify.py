"""The verdict on a run: every segment's chain and sums, the head, what is torn or damaged and where, and what to keep.

The chain proves that nothing changed by accident. It proves that nobody rewrote the log only to a person who kept a
later `sum` outside: that is what `expect` is for, and why the verdict ends with the sum to keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from eventlog._disk import DISK, Disk
from eventlog._line import Storage, Torn
from eventlog._scan import scan

if TYPE_CHECKING:
    from pathlib import Path

    from eventlog._scan import Reading


class Checked(msgspec.Struct, frozen=True):
    """One segment: its file, its good lines (`first` to `last` by seq, -1 when none), their bytes, and all its bytes.

    `zeros` are the NULs at its end: laid ahead by a writer that is alive, or that died.
    """

    file: str
    lines: int
    first: int
    last: int
    bytes: int
    size: int
    zeros: int


class Damage(msgspec.Struct, frozen=True):
    """Where a log is damaged: the facts of `LogDamaged`."""

    file: str
    offset: int
    expected_seq: int
    good_after: int
    why: str


class Verdict(msgspec.Struct, frozen=True):
    """What verifying a run found. `ok` is False when it is damaged or does not hold the expected sum; torn is normal.

    `seq` and `sum` are the last good line's: keep `sum` elsewhere to notice tampering later. `expected` tells whether
    the sum given as `expect` is a line's of this log, None when none was given. `findings` are sentences for people.
    """

    run: str
    ok: bool
    seq: int
    sum: str
    lives: int
    head: Literal["open", "closed", "missing"]
    segments: list[Checked]
    storage: Storage | None
    torn: Torn | None
    damage: Damage | None
    expected: bool | None
    strangers: list[str]
    findings: list[str]


def verify(runs: str | Path, run: str, *, expect: str | None = None, disk: Disk = DISK) -> Verdict:
    """Verify a run, live or not, without lock. `expect` is a `sum` kept elsewhere, of any line of the run.

    Raises `BadRunId`, `NoSuchRun`, `NotARunsDirectory`, `NewerFormat`, `DiskFailed`; damage is in the verdict.
    """
    reading = scan(runs, run, disk=disk)
    found = reading.damage
    damage = Damage(found.file, found.offset, found.expected_seq, found.good_after, found.why) if found else None
    expected = None if expect is None else any(line.sum == expect for line in reading.lines)
    last = reading.lines[-1] if reading.lines else None
    return Verdict(
        run=run,
        ok=damage is None and expected is not False,
        seq=last.seq if last else -1,
        sum=last.sum if last else "",
        lives=last.life if last else 0,
        head="missing" if reading.head is None else "closed" if reading.head.closed else "open",
        segments=[
            Checked(
                file=segment.file,
                lines=len(segment.lines),
                first=segment.lines[0].seq if segment.lines else -1,
                last=segment.lines[-1].seq if segment.lines else -1,
                bytes=segment.end,
                size=segment.size,
                zeros=segment.size - segment.rest,
            )
            for segment in reading.segments
        ],
        storage=reading.storage,
        torn=reading.torn,
        damage=damage,
        expected=expected,
        strangers=reading.strangers,
        findings=_findings(reading, expected=expected),
    )


def _findings(reading: Reading, *, expected: bool | None) -> list[str]:
    findings = []
    if reading.damage is not None:
        findings.append(str(reading.damage))
    if expected is False:
        findings.append("no good line of this log has the expected sum: it was rewritten, cut, or is another run's")
    if reading.torn is not None:
        torn = reading.torn
        findings.append(
            f"{torn.file} ends in {torn.size} bytes of a save that never finished, at byte {torn.offset}; "
            "nothing acknowledged is missing",
        )
    if reading.head is None:
        findings.append("the head is missing or unreadable: whether a last line is missing cannot be told")
    if reading.storage is not None and reading.storage.survives != "power loss":
        storage = reading.storage
        findings.append(f"on {storage.kind} it survives a killed process, not surely a power cut: {storage.why}")
    findings += [f"{name} is no file of this log" for name in reading.strangers]
    return findings
