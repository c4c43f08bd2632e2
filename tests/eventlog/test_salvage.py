"""Salvage: what is good of a damaged log in a new run, every gap named, and the damaged one as it was."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _frame
from tests.eventlog.making import AT, event, files, head, lines_of, made, segment
from tests.support import sample_logs
from tests.support.disks import Quick

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Break = Callable[[list[bytes]], list[bytes]]


def salvaged(runs: Path, **options: object) -> tuple[list[bytes], eventlog.Salvaged]:
    """Salvage the run `r` into `n`; give the events copied, and what the new header says."""
    before = files(runs / "r")
    with eventlog.Directory(runs, disk=Quick()).salvage("r", "n", **options) as log:  # type: ignore[arg-type] # passed on
        header = log.lines[0].header
        log.append(AT, [event(777)])
    assert files(runs / "r") == before
    assert header is not None
    assert header.salvaged is not None
    verdict = eventlog.store(runs).verify("n")
    assert verdict.ok
    assert verdict.salvaged == header.salvaged
    read = eventlog.store(runs).read("n").lines
    assert bytes(read[-1].events[0]) == event(777)
    return [bytes(one) for line in read[1:-1] for one in line.events], header.salvaged


def kept(numbers: list[int]) -> list[bytes]:
    """Give the events of the lines with these numbers in a log of `damaged`."""
    return [b'{"type":"opened"}' if number == 1 else event(number - 2, 20) for number in numbers]


def damaged(runs: Path, change: Break, *, saves: int = 5) -> None:
    """Make a log of lines 0 to 6, and change its lines."""
    path = made(runs, saves=saves)
    path.write_bytes(b"".join(change(lines_of(path))))


@pytest.mark.parametrize(
    ("change", "numbers", "gaps"),
    [
        (lambda lines: [*lines[:3], lines[3].replace(b"n", b"m", 1), *lines[4:]], [1, 2, 4, 5, 6], [(2, 4)]),
        (lambda lines: [*lines[:3], *lines[4:]], [1, 2, 4, 5, 6], [(2, 4)]),
        (lambda lines: lines[1:], [1, 2, 3, 4, 5, 6], [(-1, 1)]),
        (lambda lines: lines[:4], [1, 2, 3], [(3, None)]),
        (lambda lines: [*lines, b"x"], [1, 2, 3, 4, 5, 6], [(6, None)]),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], [1, 3, 4, 5, 6], [(1, 3)]),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], [1, 2, 3, 4, 5, 6], [(6, None)]),
        (lambda lines: [*lines[:2], bytes(70), *lines[3:4], b"junk", *lines[5:]], [1, 3, 6], [(1, 3), (3, 6)]),
        (lambda lines: [*lines[:2], b"y" * 300, *lines[4:5], lines[5][:40]], [1], [(1, None)]),
    ],
)
def test_good_lines_are_copied_and_every_gap_is_named(
    tmp_path: Path, change: Break, numbers: list[int], gaps: list[tuple[int, int | None]]
) -> None:
    """Before the damage, between two places and after the last; a copy, or a line out of order, is not taken twice."""
    damaged(tmp_path, change)
    assert not eventlog.store(tmp_path).verify("r").ok
    events, said = salvaged(tmp_path)
    assert events == kept(numbers)
    assert (said.run, said.lines) == ("r", len(numbers))
    assert [(gap.after, gap.before) for gap in said.gaps] == gaps
    assert all(gap.why for gap in said.gaps)
    findings = eventlog.store(tmp_path).verify("n").findings
    assert sum("is missing" in finding for finding in findings) == len(gaps)


def test_the_new_run_is_another_run(tmp_path: Path) -> None:
    """Framed anew: its own nonce, numbers and chain; times and the order of lives stay; the header names the parent."""
    runs = sample_logs.lay(tmp_path / "r", sample_logs.log("lives"))
    path = segment(runs)
    lines = lines_of(path)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    old = eventlog.store(runs).scan("r").lines
    with eventlog.Directory(runs, disk=Quick()).salvage("r", "n") as log:
        new = log.lines
        assert log.life == 4
        assert log.append(AT + timedelta(days=1), [event(1)]).life == 4
    assert [line.seq for line in new] == list(range(len(lines) - 1))
    assert [line.life for line in new] == [1, 1, 1, 1, 2, 3]
    assert new[2].at == old[2].at
    assert {line.sum for line in new}.isdisjoint(line.sum for line in old)
    header, was = new[0].header, old[0].header
    assert header is not None
    assert was is not None
    assert header.parent == eventlog.Parent("r", 2, old[2].sum)
    assert header.nonce != was.nonce
    assert eventlog.store(runs).runs() == ["r", "n"]


def test_it_goes_across_segments_and_keeps_nothing_of_their_headers(tmp_path: Path) -> None:
    """A missing segment is one gap; what a roll wrote is no line of a run that was never rolled."""
    runs = sample_logs.lay(tmp_path / "r", sample_logs.log("compacted"))
    segment(runs, number=2).unlink()
    events, said = salvaged(runs)
    assert events == [b'{"type":"opened"}', event(0), event(101, 30), event(2), event(102, 30)]
    assert [(gap.after, gap.before) for gap in said.gaps] == [(2, 6)]
    segment(runs, number=3).unlink()
    segment(runs, number=3).mkdir()
    events, said = salvaged_again(runs)
    assert events == [b'{"type":"opened"}', event(0), event(102, 30)]
    assert [(gap.after, gap.before) for gap in said.gaps] == [(2, 9)]


def salvaged_again(runs: Path) -> tuple[list[bytes], eventlog.Salvaged]:
    """Salvage into `m`."""
    with eventlog.Directory(runs, disk=Quick()).salvage("r", "m") as log:
        header = log.lines[0].header
        assert header is not None
        assert header.salvaged is not None
        return [bytes(one) for line in log.lines for one in line.events], header.salvaged


def test_the_copy_ends_where_the_caller_says_that_no_history_follows(tmp_path: Path) -> None:
    """The log knows no meaning: whoever does is asked about each line, in order, and the rest is a gap."""
    damaged(tmp_path, lambda lines: [*lines[:3], *lines[4:]])
    asked: list[int] = []

    def follows(line: eventlog.Line) -> bool:
        asked.append(line.seq)
        return line.seq < 5

    events, said = salvaged(tmp_path, follows=follows)
    assert events == kept([1, 2, 4])
    assert asked == [1, 2, 4, 5]
    assert [(gap.after, gap.before) for gap in said.gaps] == [(2, 4), (4, None)]


def test_a_head_that_names_a_later_line_is_a_gap_at_the_end(tmp_path: Path) -> None:
    """Two things are missing: a line in the middle, and the last ones."""
    damaged(tmp_path, lambda lines: [*lines[:2], *lines[3:5]])
    _, said = salvaged(tmp_path)
    assert [(gap.after, gap.before) for gap in said.gaps] == [(1, 3), (4, None)]


@pytest.mark.fault("a number beyond range in a log")
def test_an_event_that_no_writer_would_take_but_a_reader_reads_is_copied_as_it_is(tmp_path: Path) -> None:
    """One number of another program's would keep the whole run from being salvaged, or forked."""
    path, huge = made(tmp_path, saves=2), b'{"a":1e999}'
    last = eventlog.store(tmp_path).read("r").lines[-1]
    path.write_bytes(path.read_bytes() + _frame.build(last.seq + 1, 1, AT, last.sum, [huge]))
    (tmp_path / "r" / "head").unlink()
    assert salvaged(tmp_path)[0] == [*kept([1, 2, 3]), huge]
    lines = eventlog.store(tmp_path).read("r").lines
    with eventlog.store(tmp_path).fork(lines, "f", keep=1, at=AT, events=[event(9)]) as log:
        assert [bytes(raw) for raw in log.lines[-2].events] == [huge]


def test_a_torn_end_is_no_gap(tmp_path: Path) -> None:
    """Nothing acknowledged is missing there."""
    path = made(tmp_path, saves=2)
    head(tmp_path).unlink()
    path.write_bytes(path.read_bytes() + b'{"seq":5')
    events, said = salvaged(tmp_path)
    assert (events, said.gaps) == (kept([1, 2, 3]), ())


def test_what_cannot_be_salvaged(tmp_path: Path) -> None:
    """A name that is taken or is none, a run that is not there, and one of which nothing is left."""
    made(tmp_path)
    with pytest.raises(eventlog.RunExists):
        eventlog.store(tmp_path).salvage("r", "r")
    with pytest.raises(eventlog.BadRunId):
        eventlog.store(tmp_path).salvage("r", "../n")
    with pytest.raises(eventlog.NoSuchRun):
        eventlog.store(tmp_path).salvage("q", "n")
    segment(tmp_path).write_bytes(b"\xff" * 5000)
    with pytest.raises(eventlog.NoSuchRun, match=r"r in .* is no run: not one line"):
        eventlog.store(tmp_path).salvage("r", "n")
    assert not (tmp_path / "n").exists()
