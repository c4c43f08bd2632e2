"""Readers: no lock, nothing created, complete lines only, and never a false alarm on a live run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog._disk import Disk
from tests.eventlog.making import AT, OPENING, child, event, files, head, lines_of, made, numbers, segment

if TYPE_CHECKING:
    from pathlib import Path


def test_a_live_run_is_read_up_to_its_last_save(tmp_path: Path) -> None:
    """Audit works while the run is going: a reader sees every acknowledged line and creates nothing."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    for number in range(5):
        saved = log.append(AT, [event(number)])
        before = files(tmp_path / "r")
        reading = eventlog.store(tmp_path).read("r")
        assert reading.lines[-1] == saved
        assert (reading.torn, reading.damage, reading.closed) == (None, None, False)
        assert files(tmp_path / "r") == before
    log.close()
    assert eventlog.store(tmp_path).read("r").closed


WRITE = """
import sys, eventlog
from datetime import datetime, UTC
while True:
    with eventlog.store(sys.argv[1]).open("r") as log:
        for n in range(40):
            log.append(datetime.now(UTC), [b'{"n":%d,"text":"%b"}' % (n, b"x" * (n * 397 % 9000))])
            if n in (10, 30):
                log.compact(b'{"n":%d}' % n, 1)
"""


def test_verify_in_a_loop_on_a_log_that_is_being_written(tmp_path: Path) -> None:
    """A writer that saves, compacts, closes and opens again is never called damaged, and lines never vanish."""
    made(tmp_path)
    with child(WRITE, tmp_path) as writer, contextlib.ExitStack() as after:
        after.callback(writer.kill)
        last, lives = 4, 0
        while lives < 30:
            verdict = eventlog.store(tmp_path).verify("r")
            assert verdict.ok, verdict.findings
            eventlog.store(tmp_path).read("r", accept=lambda snapshot: snapshot.seq % 2 == 0)
            assert verdict.seq >= last
            last, lives = verdict.seq, verdict.lives


class Between(Disk):
    """Does something just before the first segment is opened, that is after the head was read."""

    def __init__(self, *acts: object) -> None:
        self.acts = list(acts)

    def open(
        self, path: Path, *, write: bool = False, create: bool = False, new: bool = False, within: int | None = None
    ) -> int:
        """Act, then open."""
        if path.name.startswith("seg-") and self.acts:
            self.acts.pop(0)()  # type: ignore[operator] # functions without arguments
        return super().open(path, write=write, create=create, new=new, within=within)


def test_a_log_opened_again_between_reading_its_head_and_its_lines(tmp_path: Path) -> None:
    """The head was read as closed and lines stand after it: the second reading tells a race from damage."""
    made(tmp_path)
    opened: list[eventlog.Log] = []

    def writer() -> None:
        opened.append(eventlog.store(tmp_path).open("r"))
        opened[0].append(AT, [event(9)])

    assert eventlog.Directory(tmp_path, disk=Between(writer)).read("r").lines[-1].seq == 5
    opened[0].close()


@pytest.mark.parametrize("look", ["scan", "verify"])
def test_a_log_opened_and_closed_again_during_every_reading(tmp_path: Path, look: str) -> None:
    """However often that is: lines after a head that said closed are damage only while it still says so."""
    made(tmp_path)

    def life() -> None:
        with eventlog.store(tmp_path).open("r") as log:
            log.append(AT, [event(9)])

    assert getattr(eventlog.Directory(tmp_path, disk=Between(*[life] * 100)), look)("r").damage is None


def test_a_writer_that_saves_while_its_log_is_being_read(tmp_path: Path) -> None:
    """Between any two reads of the reader a save may happen, more often than it would try again: never damage."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])

    class Busy(Disk):
        saves = 0

        def pread(self, fd: int, size: int, offset: int) -> bytes:
            found = super().pread(fd, size, offset)
            if size > 1000 and self.saves < 300:  # a read of the segment, not of the head
                self.saves += 1
                log.append(AT, [event(self.saves, 100)])
            return found

    disk = Busy()
    reading = eventlog.Directory(tmp_path, disk=disk).scan("r")
    assert (reading.damage, reading.torn) == (None, None)
    assert disk.saves == 300
    assert len(reading.lines) > 290
    log.close()


def test_damage_seen_differently_in_each_reading_is_seen_until_two_agree(tmp_path: Path) -> None:
    """A race never looks the same twice; what does is damage."""
    path = made(tmp_path)
    whole, states = path.read_bytes(), []

    def state(place: int) -> object:
        def act() -> None:
            states.append(place)
            path.write_bytes(whole[:place] + b"#" + whole[place + 1 :])

        return act

    first, second = len(lines_of(path)[0]) + 9, len(lines_of(path)[0] + lines_of(path)[1]) + 9
    disk = Between(state(first), state(second), state(first), lambda: path.write_bytes(whole))
    assert eventlog.Directory(tmp_path, disk=disk).scan("r").damage is None
    assert states == [first, second, first]
    disk = Between(state(first), state(second), state(second))
    found = eventlog.Directory(tmp_path, disk=disk).scan("r").damage
    assert found is not None
    assert found.expected_seq == 2


def test_a_head_older_than_the_log_is_normal(tmp_path: Path) -> None:
    """It is written without a sync, so a power cut leaves it after; nothing is missing."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    old = head(tmp_path).read_bytes()
    for number in range(3):
        log.append(AT, [event(number)])
    log.abandon()
    head(tmp_path).write_bytes(old)
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_lines_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    """A line of several reads, beside short ones, is one line."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    saved = [
        log.append(AT, [event(number, size)]) for number, size in enumerate((10, 3_000_000, 10, 1_048_000, 1_100_000))
    ]
    log.close()
    assert eventlog.store(tmp_path).read("r").lines[2:] == saved


@pytest.mark.fault("failing system call")
def test_a_read_that_fails_is_said(tmp_path: Path) -> None:
    """EIO while reading is neither a short log nor damage."""

    class Bad(Disk):
        def pread(self, fd: int, size: int, offset: int) -> bytes:  # noqa: ARG002 - the verb's signature
            raise OSError(5, "Input/output error")

    made(tmp_path)
    for act in ("read", "open", "verify"):
        with pytest.raises(eventlog.DiskFailed, match="Input/output error"):
            getattr(eventlog.Directory(tmp_path, disk=Bad()), act)("r")
    assert eventlog.store(tmp_path).holder("r") is None
    assert segment(tmp_path).exists()
