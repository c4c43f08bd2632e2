"""A save that never finished: cut, its bytes kept as evidence, and the run goes on."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import strategies as st

import eventlog
from tests.eventlog.making import AT, event, files, goes_on, head, heads, lines_of, made, numbers, segment

if TYPE_CHECKING:
    from pathlib import Path

SECTOR = 512


def broken(tmp_path: Path, *, size: int = 20) -> tuple[bytes, bytes, list[bytes]]:
    """Make a log of three saves whose writer died; give the bytes before its last line, that line, and the heads."""
    found = heads(tmp_path, saves=3, size=size)
    lines = lines_of(segment(tmp_path))
    return b"".join(lines[:-1]), lines[-1], found


@pytest.mark.fault("torn tail")
def test_last_line_cut_at_each_byte(tmp_path: Path) -> None:
    """With the head after, every cut is torn and the events are the acknowledged ones; with it, damage."""
    good, last, found = broken(tmp_path)
    for cut in range(len(last)):
        for tail in (b"", bytes(SECTOR)):
            segment(tmp_path).write_bytes(good + last[:cut] + tail)
            head(tmp_path).write_bytes(found[-2])
            reading = eventlog.store(tmp_path).read("r")
            assert [line.seq for line in reading.lines] == [0, 1, 2, 3]
            assert reading.torn == (eventlog.Torn("seg-000001.jsonl", len(good), cut) if cut else None)
            head(tmp_path).write_bytes(found[-1])
            with pytest.raises(eventlog.LogDamaged, match="line 4 was acknowledged, and it is gone") as caught:
                eventlog.store(tmp_path).read("r")
            assert (caught.value.offset, caught.value.expected_seq) == (len(good), 4)


@pytest.mark.fault("torn tail")
def test_torn_bytes_are_kept_as_evidence_and_the_run_goes_on(tmp_path: Path) -> None:
    """What is cut is never lost: the evidence is named by its digest, and the log knows what it cut."""
    good, last, found = broken(tmp_path)
    segment(tmp_path).write_bytes(good + last[:60] + bytes(4096))
    head(tmp_path).write_bytes(found[-2])
    log = goes_on(tmp_path)
    name = f"torn-000001-{hashlib.sha256(last[:60]).hexdigest()}"
    assert log.cut == eventlog.Torn("seg-000001.jsonl", len(good), 60, name)
    kept = tmp_path / "r" / name
    assert kept.read_bytes() == last[:60]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.stat().st_nlink == 1
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]
    assert bytes(eventlog.store(tmp_path).read("r").lines[-1].events[0]) == event(999)


@pytest.mark.fault("torn tail")
def test_evidence_that_exists_counts_as_done(tmp_path: Path) -> None:
    """A crash after the copy and before the cut must not fail the next opening, nor copy twice."""
    good, last, found = broken(tmp_path)
    name = f"torn-000001-{hashlib.sha256(last[:60]).hexdigest()}"
    (tmp_path / "r" / name).write_bytes(last[:60])
    before = (tmp_path / "r" / name).stat().st_ino
    segment(tmp_path).write_bytes(good + last[:60])
    head(tmp_path).write_bytes(found[-2])
    log = goes_on(tmp_path)
    assert log.cut is not None
    assert log.cut.evidence == name
    assert (tmp_path / "r" / name).stat().st_ino == before


@pytest.mark.fault("torn sectors")
@hypothesis.settings(max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(lost=st.sets(st.integers(0, 9)), start=st.integers(0, SECTOR - 1))
def test_sectors_of_the_last_line_lost_in_any_subset(
    tmp_path_factory: pytest.TempPathFactory,
    lost: set[int],
    start: int,
) -> None:
    """With the head after, any subset of its sectors as NUL is torn or intact, never a third thing."""
    runs = tmp_path_factory.mktemp("sectors")
    log = eventlog.store(runs).create("r", at=AT, events=[event(0, start)])
    log.append(AT, [event(1)])
    before, offset = head(runs).read_bytes(), len(b"".join(lines_of(segment(runs))))
    log.append(AT, [event(2, 4000)])
    log.abandon()
    data = bytearray(segment(runs).read_bytes())
    whole = bytes(data)
    end = len(whole.rstrip(b"\0"))
    for sector in lost:
        first = max(offset, (offset // SECTOR + sector) * SECTOR)
        last = min(end, (offset // SECTOR + sector + 1) * SECTOR)
        data[first:last] = bytes(max(0, last - first))
    segment(runs).write_bytes(data)
    head(runs).write_bytes(before)
    reading = eventlog.store(runs).read("r")
    left = bytes(data[offset:]).rstrip(b"\0")
    if bytes(data) == whole:
        assert ([line.seq for line in reading.lines], reading.torn) == ([0, 1, 2, 3], None)
    else:
        assert [line.seq for line in reading.lines] == [0, 1, 2]
        assert reading.torn == (eventlog.Torn("seg-000001.jsonl", offset, len(left)) if left else None)
    assert goes_on(runs).life == 2


@pytest.mark.fault("NUL tail")
@pytest.mark.parametrize("size", [1, 511, 4096, 143_000, 3_000_000])
@pytest.mark.parametrize("end", ["close", "abandon"])
def test_nul_tail(tmp_path: Path, size: int, end: str) -> None:
    """NULs after the last line are nothing torn, however many, and the run goes on."""
    with made(tmp_path, end=end).open("ab") as file:
        file.write(bytes(size))
    reading = eventlog.store(tmp_path).read("r")
    assert (reading.torn, reading.damage, reading.closed) == (None, None, False)
    assert goes_on(tmp_path).cut is None
    assert not list((tmp_path / "r").glob("torn-*"))


@pytest.mark.fault("torn tail")
def test_a_whole_last_line_that_was_not_acknowledged_is_kept(tmp_path: Path) -> None:
    """The fate of a save cut off after its bytes reached the disk is: it happened, and its number is used once."""
    good, last, found = broken(tmp_path)
    head(tmp_path).write_bytes(found[-2])
    assert segment(tmp_path).read_bytes().startswith(good + last)
    log = eventlog.store(tmp_path).open("r")
    assert (log.seq, len(log.lines)) == (4, 5)
    assert head(tmp_path).read_bytes() == found[-2]
    log.close()


@pytest.mark.fault("torn tail")
def test_64_mebibytes_without_a_newline_are_torn_in_bounded_memory(tmp_path: Path) -> None:
    """Garbage of any length is judged piece by piece, and copied piece by piece."""
    path = made(tmp_path, end="abandon")
    good = b"".join(lines_of(path))
    with path.open("r+b") as file:
        file.truncate(len(good))
        file.seek(len(good))
        for _ in range(64):
            file.write(b"x" * 1024 * 1024)
    reading = eventlog.store(tmp_path).read("r")
    assert reading.torn == eventlog.Torn("seg-000001.jsonl", len(good), 64 * 1024 * 1024)
    log = goes_on(tmp_path)
    assert log.cut is not None
    assert (tmp_path / "r" / log.cut.evidence).stat().st_size == 64 * 1024 * 1024


@pytest.mark.fault("torn tail")
def test_a_reader_of_a_torn_log_changes_nothing(tmp_path: Path) -> None:
    """Only an opener cuts: reading may happen on a run that another process is writing."""
    good, last, found = broken(tmp_path)
    segment(tmp_path).write_bytes(good + last[:60])
    head(tmp_path).write_bytes(found[-2])
    before = files(tmp_path / "r")
    assert eventlog.store(tmp_path).read("r").torn is not None
    assert files(tmp_path / "r") == before
