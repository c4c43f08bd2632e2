"""The verdict on a run: chain and sums, segments, snapshots, the head, what is torn or damaged and where, what to keep.

It is read by the second reader (`_independent_reader`), which shares no code with the writer or with `read`, so that
an error in one of them is seen by the other; `_verify_scan` says what its bytes come to.

The chain proves that nothing changed by accident. It proves that nobody rewrote the log only to a person who kept a
later `sum` outside: that is what `expect` is for, and why the verdict ends with the sum to keep.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from eventlog._files import Files
from eventlog._line import Salvaged, Storage, Torn
from eventlog._os_errors import reading
from eventlog._scan import steady
from eventlog.errors import OtherFormat

if TYPE_CHECKING:
    from eventlog._verify_scan import Evidence


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


class Cache(msgspec.Struct, frozen=True):
    """One snapshot: its file, the line it was made of, how (`version`, the caller's number), and its bytes.

    `why` says why it counts for nothing, and is empty when the log confirms it.
    """

    file: str
    seq: int
    version: int
    size: int
    why: str


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
    the sum given as `expect` is a line's of this log, None when none was given. `salvaged` says what damaged run it
    was copied from, if any. `findings` are sentences for people.
    """

    run: str
    ok: bool
    seq: int
    sum: str
    lives: int
    head: Literal["open", "closed", "missing"]
    segments: list[Checked]
    snapshots: list[Cache]
    storage: Storage | None
    salvaged: Salvaged | None
    torn: Torn | None
    damage: Damage | None
    expected: bool | None
    strangers: list[str]
    findings: list[str]


def verify(files: Files, run: str, expect: str | None) -> Verdict:
    """Verify a run, live or not. `expect` is a `sum` kept elsewhere, of any line of the run."""
    from eventlog import _verify_scan  # noqa: PLC0415 - no run needs the second reader

    with reading(run):
        evidence = steady(lambda: _verify_scan.gathered(files, run))
    if evidence.newer is not None:
        raise OtherFormat(run, evidence.newer)
    return _verdict(evidence, expect)


def _verdict(evidence: "Evidence", expect: str | None) -> Verdict:
    damage = evidence.damage
    expected = None if expect is None else any(line.sum == expect for line in evidence.lines)
    last = evidence.lines[-1] if evidence.lines else None
    head = evidence.head
    header = evidence.lines[0].header if evidence.lines else None
    return Verdict(
        run=evidence.run,
        ok=damage is None and expected is not False,
        seq=last.seq if last else -1,
        sum=last.sum if last else "",
        lives=last.life if last else 0,
        head="missing" if head is None else head["state"],
        segments=[
            Checked(part.file, part.lines, part.first, part.last, part.end, part.size, part.size - part.rest)
            for part in evidence.segments
        ],
        snapshots=[Cache(**snapshot) for snapshot in evidence.snapshots],
        storage=msgspec.convert(header["storage"], Storage) if header else None,
        salvaged=msgspec.convert(header.get("salvaged"), Salvaged | None) if header else None,
        torn=evidence.torn,
        damage=Damage(*damage.args[1:]) if damage else None,
        expected=expected,
        strangers=evidence.strangers,
        findings=list(_findings(evidence, expected=expected)),
    )


def _findings(evidence: "Evidence", *, expected: bool | None) -> Iterator[str]:
    if evidence.damage is not None:
        yield str(evidence.damage)
    if expected is False:
        yield "no good line of this log has the expected sum: it was rewritten, cut, or is another run's"
    if (torn := evidence.torn) is not None:
        yield (
            f"{torn.file} ends in {torn.size} bytes of a save that never finished, at byte {torn.offset}; "
            "nothing acknowledged is missing"
        )
    if evidence.head is None:
        yield "the head is missing or unreadable: whether a last line is missing cannot be told"
    header = evidence.lines[0].header if evidence.lines else None
    if header and header["storage"]["survives"] != "power loss":
        storage = header["storage"]
        why = storage.get("why", "")
        yield f"on {storage['kind']} it survives a killed process, not surely a power cut: {why}"
    if header and header.get("salvaged"):
        salvaged = header["salvaged"]
        yield f"it was salvaged from run {salvaged['run']}, of which {salvaged['lines']} lines could be read"
        for gap in salvaged["gaps"]:
            upto = "" if gap["before"] is None else f" and before line {gap['before']}"
            yield f"what came after line {gap['after']}{upto} of run {salvaged['run']} is missing: {gap['why']}"
    for snapshot in evidence.snapshots:
        if snapshot["why"]:
            yield f"{snapshot['file']} counts for nothing: {snapshot['why']}"
    yield from (f"{name} is no file of this log" for name in evidence.strangers)
