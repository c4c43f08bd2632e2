"""Whoever follows a run reads each line once, from where it stopped; what is no next line has the run read anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventlog
from tests.eventlog.making import AT, OPENING, event, segment
from tests.eventlog.test_store import STORES, made
from tests.support.disks import Quick

KINDS = [pytest.param(name, marks=pytest.mark.full if "base" in name else ()) for name in STORES]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> eventlog.Store:
    """An empty store of each kind."""
    return STORES[request.param](request)


class Reads(Quick):
    """Counts the bytes that are read."""

    read = 0

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Count, and read."""
        found = super().pread(fd, size, offset)
        self.read += len(found)
        return found


def numbers(lines: list[eventlog.Line] | None) -> list[int] | None:
    """The numbers of lines."""
    return None if lines is None else [line.seq for line in lines]


def test_each_line_comes_once_whoever_writes_and_through_every_segment(store: eventlog.Store) -> None:
    """While it is written, after it was closed, opened again, rolled and compacted."""
    made(store)
    tail = store.tail(store.read("r"))
    assert tail.more() == []
    with store.open("r") as log:
        assert tail.more() == []
        written = [log.append(AT, [event(n)], room=n) for n in range(4, 7)]
        assert tail.more() == written
        assert tail.more() == []
        log.append(AT, [event(7)])
        log.compact(b"{}", 1)
        log.append(AT, [event(8)])
    assert numbers(tail.more()) == [line.seq for line in store.read("r").lines[7:]]
    with store.open("r") as log:
        log.append(AT, [event(9)])
    begun = store.tail(store.read("r", accept=lambda _: True))
    with store.open("r") as log:
        last = log.append(AT, [event(10)])
    assert begun.more() == [last]
    assert numbers(tail.more()) == [last.seq - 1, last.seq]


def test_a_run_that_is_gone_is_read_anew(store: eventlog.Store) -> None:
    """Whoever reads it is told that there is none; another run of its name is not taken for it."""
    made(store)
    tail = store.tail(store.read("r"))
    assert [problem for _, problem in store.prune({"r": {}})] == [None]
    assert tail.more() is None
    store.forget(AT.replace(year=9999))
    with store.create("r", at=AT, events=[OPENING]) as log:
        for number in range(9):
            log.append(AT, [event(number + 70, 30)])
    assert tail.more() is None


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    """A long log costs as much as a short one, but for the zeros that are laid ahead of its end."""
    disk = Reads()
    store = eventlog.Directory(tmp_path, disk=disk)
    with store.create("r", at=AT, events=[OPENING]) as log:
        for number in range(300):
            log.append(AT, [event(number, 1500)])
        tail = store.tail(store.read("r"))
        log.append(AT, [event(300, 1500)])
        disk.read = 0
        assert numbers(tail.more()) == [302]
    assert disk.read < 140_000 < segment(tmp_path).stat().st_size


@pytest.mark.fault("torn line")
def test_a_save_that_never_finished_is_no_line_and_what_follows_it_is_found(tmp_path: Path) -> None:
    """Its bytes may stand there for as long as nobody opens the run."""
    store = eventlog.Directory(tmp_path, disk=Quick())
    made(store)
    tail = store.tail(store.read("r"))
    whole = segment(tmp_path).read_bytes()
    with store.open("r") as log:
        line = log.append(AT, [event(5)])
    after = segment(tmp_path).read_bytes()[len(whole) :]
    for torn in (after[:9], after[:-1], after[:-1] + b"\0" * 9, b"\0" * 9):
        segment(tmp_path).write_bytes(whole + torn)
        assert tail.more() == []
    segment(tmp_path).write_bytes(whole + after)
    assert tail.more() == [line]


@pytest.mark.fault("flipped bit", "lost tail")
@pytest.mark.parametrize("damage", ["sum", "order", "cut", "header"])
def test_what_is_not_the_next_line_has_the_run_read_anew(tmp_path: Path, damage: str) -> None:
    """Which says what is wrong."""
    store = eventlog.Directory(tmp_path, disk=Quick())
    made(store)
    tail, file = store.tail(store.read("r")), segment(tmp_path)
    with store.open("r") as log:
        log.append(AT, [event(5)])
        log.append(AT, [event(6)])
    data = file.read_bytes()
    changed = {
        "sum": data.replace(b'"n":5', b'"n":4'),
        "order": b"".join(data.splitlines(keepends=True)[:4] + data.splitlines(keepends=True)[5:]),
        "cut": data[:100],
        "header": data,
    }
    file.write_bytes(changed[damage])
    if damage == "header":
        segment(tmp_path, number=2).write_bytes(data.splitlines(keepends=True)[-1])
    assert tail.more() is None
    with pytest.raises(eventlog.LogDamaged):
        store.read("r")
