"""One bit flipped, or the end cut off, in a log of 40 lines: loud with the head, and without it all but a few flips.

Everything is counted: `make test-full` takes every bit of every byte and every length, `make test` a seeded sample.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

import eventlog
from eventlog.simdisk import Image, Machine, Process
from tests.eventlog.powerloss.kept import write
from tests.eventlog.powerloss.story import AT, OPENING, RUN, RUNS
from tests.support.figures import FIGURES

LINES = 40
BEHIND = 5
"""How many lines an older head is after."""
HEADS = ("present", "older", "missing")
SAMPLE = 600


@dataclass
class Log:
    """A log on a simulated disk, to be harmed in memory and read as often as needed. `ends` are where lines end."""

    machine: Machine
    content: bytes
    ends: list[int]
    head_end: int

    def harmed(self, content: bytes | bytearray) -> eventlog.Reading:
        """Read the log as if its segment held other bytes."""
        self.machine.files[self.machine.find(RUNS / RUN / "seg-000001.jsonl")][:] = content
        return eventlog.Directory(RUNS, disk=Process(self.machine)).scan(RUN)

    def flipped(self, bit: int) -> eventlog.Reading:
        """Read the log with one bit flipped."""
        changed = bytearray(self.content)
        changed[bit // 8] ^= 1 << bit % 8
        return self.harmed(changed)


def closed_log(head: str) -> Log:
    """Make a log of 40 lines, properly closed, with its head as it is, as it was five saves ago, or without it."""
    machine = Machine()
    disk = Process(machine)
    older = b""
    with eventlog.Directory(RUNS, disk=disk).create(RUN, at=AT, events=[OPENING]) as log:
        for number in range(2, LINES):
            log.append(AT, [b'{"n":%d}' % number])
            if number == LINES - 1 - BEHIND:
                older = bytes(machine.files[machine.find(RUNS / RUN / "head")])
    if head == "older":
        machine.files[machine.find(RUNS / RUN / "head")][:] = older
    elif head == "missing":
        machine.unlink(RUNS / RUN / "head")
    content = bytes(machine.files[machine.find(RUNS / RUN / "seg-000001.jsonl")])
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    claimed = {"present": len(ends), "older": len(ends) - BEHIND, "missing": 0}[head]
    return Log(machine, content, ends, ends[claimed - 1] if claimed else 0)


def silent_flips(log: Log, bits: Iterable[int]) -> list[int]:
    """Give the bits whose flip no reader calls damage; a reader that does keeps the lines before it, and only those."""
    silent = []
    for bit in bits:
        reading = log.flipped(bit)
        whole = sum(end <= bit // 8 for end in log.ends)
        assert len(reading.lines) == whole
        if reading.damage is None:
            silent.append(bit)
        elif reading.damage.file == "seg-000001.jsonl" and reading.damage.offset > bit // 8:
            pytest.fail(f"the flip of bit {bit} was found after its place, at byte {reading.damage.offset}")
    return silent


def newline_bits(log: Log) -> list[int]:
    """Give the eight bits of the last line's newline: without it the line looks like a save that never finished."""
    return list(range((len(log.content) - 1) * 8, len(log.content) * 8))


@pytest.mark.fault("flipped bit")
@pytest.mark.fault("flipped end of a line")
@pytest.mark.parametrize("head", HEADS)
def test_a_bit_flipped(head: str) -> None:
    """A sample of all bits, and all of the last line's end, where the few silent ones are."""
    log = closed_log(head)
    rng = random.Random(head)  # noqa: S311 - it picks examples; it protects nothing
    last = range((len(log.content) - 12) * 8, len(log.content) * 8)
    bits = sorted({*rng.sample(range(len(log.content) * 8), SAMPLE), *last})
    assert silent_flips(log, bits) == ([] if head == "present" else newline_bits(log))


@pytest.mark.fault("flipped bit")
@pytest.mark.fault("flipped end of a line")
@pytest.mark.full
@pytest.mark.parametrize("head", HEADS)
def test_every_bit_flipped(head: str, record_property: Callable[[str, object], None]) -> None:
    """0 silent with the head; without it, or with an older one, the eight bits of the last newline."""
    log = closed_log(head)
    silent = silent_flips(log, range(len(log.content) * 8))
    record_property(FIGURES, f"{len(log.content) * 8} bits, {len(silent)} silent")
    assert silent == ([] if head == "present" else newline_bits(log))


def wrong_lengths(log: Log, lengths: Iterable[int]) -> tuple[list[int], int]:
    """Cut the log to each length; give those at which a reader says something wrong, and how many were silent.

    Damage is what falls short of the head's claim, or of the first line. After the claim a cut looks like a save that
    was cut off, and nothing can tell that it was not: a shorter log is what an earlier moment looked like.
    """
    found, silent = [], 0
    for length in lengths:
        reading = log.harmed(log.content[:length])
        whole = sum(end <= length for end in log.ends)
        quiet = reading.damage is None
        silent += quiet
        right = len(reading.lines) == whole and quiet == (length >= max(log.head_end, log.ends[0]))
        if not right or (quiet and (reading.torn is not None) != (length not in log.ends)):
            found.append(length)
    return found, silent


@pytest.mark.fault("torn tail")
@pytest.mark.parametrize("head", HEADS)
def test_a_cut_length(head: str) -> None:
    """A sample of all lengths, and every one within the first line and the last two."""
    log = closed_log(head)
    rng = random.Random(head)  # noqa: S311 - it picks examples; it protects nothing
    drawn = rng.sample(range(len(log.content)), SAMPLE // 4)
    lengths = {*range(log.ends[0] + 2), *range(log.ends[-3], len(log.content)), *drawn}
    found, silent = wrong_lengths(log, sorted(lengths))
    assert found == []
    assert (silent == 0) == (head == "present")


@pytest.mark.fault("torn tail")
@pytest.mark.full
@pytest.mark.parametrize("head", HEADS)
def test_every_length(head: str, record_property: Callable[[str, object], None]) -> None:
    """0 silent with the head; otherwise exactly those after what the head claims."""
    log = closed_log(head)
    found, silent = wrong_lengths(log, range(len(log.content)))
    record_property(FIGURES, f"{len(log.content)} lengths, {silent} look like an earlier moment")
    assert found == []
    assert silent == {"present": 0, "missing": len(log.content) - log.ends[0]}.get(
        head, len(log.content) - log.head_end
    )


def test_damage_touches_nothing_on_disk() -> None:
    """An opener that meets a flipped bit leaves every byte as it was, the lock file's too."""
    log = closed_log("present")
    rng = random.Random(0)  # noqa: S311 - it picks examples; it protects nothing
    for bit in rng.sample(range(len(log.content) * 8), 40):
        log.flipped(bit)
        before = {number: bytes(data) for number, data in log.machine.files.items()}
        with pytest.raises(eventlog.LogDamaged):
            eventlog.Directory(RUNS, disk=Process(log.machine)).open(RUN)
        assert {number: bytes(data) for number, data in log.machine.files.items()} == before


@pytest.mark.parametrize("head", HEADS)
def test_the_real_disk_agrees(head: str, tmp_path: Path) -> None:
    """What is read from memory here is what a reader of the same bytes in a real directory says."""
    log = closed_log(head)
    rng = random.Random(1)  # noqa: S311 - it picks examples; it protects nothing
    for bit in rng.sample(range(len(log.content) * 8), 20):
        simulated = log.flipped(bit)
        place = tmp_path / str(bit)
        files = {number: bytes(data) for number, data in log.machine.files.items()}
        write(Image(log.machine.directories, files), place)
        real = eventlog.store(place / "runs").scan(RUN)
        assert (real.lines, real.torn, str(real.damage)) == (simulated.lines, simulated.torn, str(simulated.damage))
