"""What was durable once and is gone or changed: loud, exact, and nothing on disk is touched."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _frame
from eventlog._line import Header
from tests.eventlog.making import AT, event, files, goes_on, head, lines_of, made, rolled, segment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def refused(runs: Path) -> eventlog.LogDamaged:
    """Assert that reader and writer refuse the run with the same facts, and that no byte changes."""
    before = files(runs / "r")
    with pytest.raises(eventlog.LogDamaged) as read:
        eventlog.store(runs).read("r")
    with pytest.raises(eventlog.LogDamaged) as opened:
        eventlog.store(runs).open("r")
    scanned = eventlog.store(runs).scan("r")
    assert scanned.damage is not None
    assert read.value.args == opened.value.args == scanned.damage.args
    assert files(runs / "r") == before
    assert eventlog.store(runs).holder("r") is None
    return read.value


@pytest.mark.fault("NUL in the middle")
def test_nul_block_in_the_middle(tmp_path: Path) -> None:
    """NULs with good lines after them are no torn tail; the error says how many good lines follow."""
    path = made(tmp_path, saves=6, size=300, end="abandon")
    lines = lines_of(path)
    start = len(b"".join(lines[:3]))
    for first, last, after in ((5, 25, 4), (0, len(lines[3]), 4), (0, len(lines[3]) + 9, 3), (50, len(lines[3]), 4)):
        data = bytearray(b"".join(lines))
        data[start + first : start + last] = bytes(last - first)
        path.write_bytes(data)
        head(tmp_path).unlink(missing_ok=True)
        error = refused(tmp_path)
        assert (error.file, error.offset, error.expected_seq) == ("seg-000001.jsonl", start, 3)
        assert error.good_after == after, (first, last)


@pytest.mark.fault("NUL in the middle")
def test_a_hole_and_a_whole_line_with_a_wrong_sum_behind_it(tmp_path: Path) -> None:
    """A later line was begun, so the one with the hole was durable: no torn save, even without a good line after."""
    path = made(tmp_path, saves=3, size=300, end="abandon")
    lines = lines_of(path)
    head(tmp_path).unlink()
    hole = lines[3][:40] + bytes(50) + lines[3][90:]
    path.write_bytes(b"".join([*lines[:3], hole, lines[4].replace(b"noted", b"notes")]))
    error = refused(tmp_path)
    assert (error.expected_seq, error.good_after) == (3, 0)
    assert "a whole line after it" in error.why
    path.write_bytes(b"".join([*lines[:3], hole]))
    assert eventlog.store(tmp_path).read("r").torn is not None


@pytest.mark.fault("missing or foreign segment")
def test_a_segment_behind_a_damaged_one_that_is_not_a_file(tmp_path: Path) -> None:
    """Counting what is good after the damage follows no link."""
    paths = rolled(tmp_path)
    (tmp_path / "target").write_bytes(paths[2].read_bytes())
    paths[2].unlink()
    paths[2].symlink_to(tmp_path / "target")
    paths[1].write_bytes(b"rubbish\n")
    assert refused(tmp_path).good_after == 0


@pytest.mark.fault("fused lines")
def test_a_stub_and_the_next_line_fused(tmp_path: Path) -> None:
    """What a writer that appended after a torn tail would leave is damage, not a torn save."""
    path = made(tmp_path)
    lines = lines_of(path)
    head(tmp_path).unlink()
    path.write_bytes(b"".join(lines[:3]) + lines[3][:40] + lines[3] + lines[4])
    assert refused(tmp_path).good_after == 1
    path.write_bytes(b"".join(lines[:4]) + lines[4][:40] + lines[4])
    assert refused(tmp_path).expected_seq == 4


@pytest.mark.fault("lines swapped, doubled or removed")
@pytest.mark.parametrize(
    ("change", "expected", "after"),
    [
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 2, 3),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], 3, 3),
        (lambda lines: [*lines[:2], *lines[3:]], 2, 2),
        (lambda lines: [*lines[:-2], lines[-1]], 4, 0),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], 2, 4),
        (lambda lines: lines[1:], 0, 4),
    ],
    ids=["swapped", "duplicated", "removed", "last but one removed", "blank line", "no header"],
)
def test_lines_out_of_order(
    tmp_path: Path,
    change: Callable[[list[bytes]], list[bytes]],
    expected: int,
    after: int,
) -> None:
    """Every line is good by itself; the chain says that they do not belong together like this."""
    path = made(tmp_path, saves=4)
    path.write_bytes(b"".join(change(lines_of(path))))
    head(tmp_path).unlink()
    error = refused(tmp_path)
    assert (error.expected_seq, error.good_after) == (expected, after)


@pytest.mark.fault("foreign lines")
def test_a_line_of_another_run_with_the_same_number(tmp_path: Path) -> None:
    """A chain links to its own header, so a line cannot be borrowed."""
    path, other = made(tmp_path), made(tmp_path, "other")
    mine, foreign = lines_of(path), lines_of(other)
    path.write_bytes(b"".join([*mine[:3], foreign[3], *mine[4:]]))
    error = refused(tmp_path)
    assert (error.expected_seq, error.good_after) == (3, 1)


@pytest.mark.fault("foreign lines")
def test_a_run_renamed_by_hand(tmp_path: Path) -> None:
    """Idempotency keys are made from the id, so a log under another id must not be continued."""
    made(tmp_path, "other")
    (tmp_path / "other").rename(tmp_path / "r")
    assert "names run 'other'" in refused(tmp_path).why


@pytest.mark.fault("flipped bit")
def test_every_bit_of_every_acknowledged_byte_flipped(tmp_path: Path) -> None:
    """Loud with the head; with the head lost, all but eight flips of the last line are loud.

    The eight are those of its last newline. (A space or `@` in the last line would add one each, its flip to NUL; the
    events here have none.)
    """
    log = eventlog.store(tmp_path).create("r", at=AT, events=[])
    log.append(AT, [event(1)])
    log.abandon()
    witness, path = head(tmp_path).read_bytes(), segment(tmp_path)
    data = b"".join(lines_of(path))
    os.truncate(path, len(data) + 600)
    silent = []
    with path.open("r+b", buffering=0) as log_file, head(tmp_path).open("r+b", buffering=0) as head_file:
        for place, bit in itertools.product(range(len(data)), range(8)):
            os.pwrite(log_file.fileno(), bytes([data[place] ^ 1 << bit]), place)
            os.pwrite(head_file.fileno(), witness, 0)
            assert eventlog.store(tmp_path).scan("r").damage is not None, (place, bit)
            os.pwrite(head_file.fileno(), bytes(len(witness)), 0)
            if eventlog.store(tmp_path).scan("r").damage is None:
                silent.append((place, bit))
            os.pwrite(log_file.fileno(), data[place : place + 1], place)
    assert silent == [(len(data) - 1, bit) for bit in range(8)]


@pytest.mark.fault("flipped end of a line")
@pytest.mark.parametrize("back", [1, 2, 3, 10])
def test_the_end_of_the_last_line_flipped(tmp_path: Path, back: int) -> None:
    """The newline, the `"}` and the sum are covered by the head's claim."""
    path = made(tmp_path)
    data = bytearray(path.read_bytes())
    data[-back] ^= 1
    path.write_bytes(data)
    assert refused(tmp_path).expected_seq == 4


@pytest.mark.fault("line too long")
def test_17_mebibytes_in_one_line(tmp_path: Path) -> None:
    """A whole line longer than any of ours is damage, found in bounded memory."""
    path = made(tmp_path, end="abandon")
    good = b"".join(lines_of(path))
    path.write_bytes(good + b'{"seq":5,' + b"x" * (17 * 1024 * 1024) + b"\n")
    assert refused(tmp_path).offset == len(good)


@pytest.mark.fault("stray byte after a close")
def test_one_stray_byte_behind_a_clean_close(tmp_path: Path) -> None:
    """A closed log ends where its head says; without a head a stray byte only looks torn."""
    path = made(tmp_path)
    size = path.stat().st_size
    for stray in (b"x", b"{", b"\n", b'{"seq":5,"li'):
        with path.open("r+b") as file:
            file.truncate(size)
            file.seek(size)
            file.write(stray)
        error = refused(tmp_path)
        assert (error.offset, error.expected_seq) == (size, 5)


@pytest.mark.fault("stray byte after a close")
def test_whole_lines_behind_a_closed_head(tmp_path: Path) -> None:
    """A closed head rules out even good lines: our writer opens the head, durably, before it writes one."""
    path = made(tmp_path)
    closed = head(tmp_path).read_bytes()
    goes_on(tmp_path)
    head(tmp_path).write_bytes(closed)
    error = refused(tmp_path)
    assert "closed head" in error.why
    assert error.good_after == 1
    assert error.offset < path.stat().st_size


@pytest.mark.fault("bad head")
def test_a_head_with_another_sum(tmp_path: Path) -> None:
    """A log replaced as a whole by a consistent one is still not the log the head has seen."""
    mine = made(tmp_path)
    kept = head(tmp_path).read_bytes()
    for path in (tmp_path / "r").iterdir():
        path.unlink()
    (tmp_path / "r").rmdir()
    made(tmp_path, size=21)
    head(tmp_path).write_bytes(kept)
    assert "names another line 4" in refused(tmp_path).why
    assert mine.exists()


@pytest.mark.fault("bad head")
def test_a_head_that_is_not_exactly_a_head_counts_as_missing(tmp_path: Path) -> None:
    """A half-written head says nothing; the log is read, and opened, without it."""
    made(tmp_path)
    whole = head(tmp_path).read_bytes()
    for bad in (b"", whole[:-1], whole + b"\n", bytes(256), whole.replace(b'"seq":4', b'"seq":5'), b"x" * 256):
        head(tmp_path).write_bytes(bad)
        reading = eventlog.store(tmp_path).read("r")
        assert (reading.head, reading.damage, reading.closed) == (None, None, False)
    assert goes_on(tmp_path).seq == 5


@pytest.mark.fault("missing or foreign segment")
@pytest.mark.parametrize("content", [b"", bytes(70_000), b'{"seq":0,"li', b"x", b"\n"])
@pytest.mark.parametrize("with_head", [True, False])
def test_first_segment_without_a_whole_header(tmp_path: Path, content: bytes, with_head: bool) -> None:
    """A segment gets its name when its header is durable, so an empty or torn one was changed later."""
    made(tmp_path).write_bytes(content)
    if not with_head:
        head(tmp_path).unlink()
    assert refused(tmp_path).expected_seq == 0


@pytest.mark.fault("missing or foreign segment")
def test_header_only(tmp_path: Path) -> None:
    """A header without lines is a good log to go on with."""
    eventlog.store(tmp_path).create("r", at=AT, events=[]).close()
    assert [line.seq for line in eventlog.store(tmp_path).read("r").lines] == [0]
    assert goes_on(tmp_path).seq == 1


@pytest.mark.fault("missing or foreign segment")
def test_a_directory_with_a_head_and_no_segment(tmp_path: Path) -> None:
    """It was a run once: the first segment is gone, which is not the same as no run."""
    made(tmp_path).unlink()
    assert (refused(tmp_path).file, refused(tmp_path).offset) == ("seg-000001.jsonl", 0)


def test_several_segments_are_one_log(tmp_path: Path) -> None:
    """A reader follows the chain through every segment; a writer goes on in the last and leaves the others alone."""
    paths = rolled(tmp_path)
    sealed = [path.read_bytes() for path in paths[:-1]]
    reading = eventlog.store(tmp_path).read("r")
    assert [line.seq for line in reading.lines] == list(range(9))
    assert [line.seq for line in reading.lines if line.header] == [0, 3, 6]
    assert goes_on(tmp_path).seq == 9
    assert [path.read_bytes() for path in paths[:-1]] == sealed
    assert lines_of(paths[-1])[-1].startswith(b'{"seq":9,"life":2')
    assert eventlog.store(tmp_path).read("r").closed


@pytest.mark.fault("missing or foreign segment")
def test_a_gap_in_the_numbers_of_segments(tmp_path: Path) -> None:
    """A missing segment is named, and what lies after it is counted."""
    paths = rolled(tmp_path)
    paths[1].unlink()
    error = refused(tmp_path)
    assert (error.file, error.expected_seq, error.good_after) == ("seg-000002.jsonl", 3, 3)
    assert "missing" in error.why


@pytest.mark.fault("missing or foreign segment")
def test_the_last_segment_missing_is_told_by_the_head(tmp_path: Path) -> None:
    """Nothing in the other segments shows that one is gone; the head does."""
    paths = rolled(tmp_path)
    goes_on(tmp_path)
    paths[-1].unlink()
    assert "line 9 was acknowledged" in refused(tmp_path).why


@pytest.mark.fault("missing or foreign segment")
@pytest.mark.parametrize("stray", [b"\0", b"x", b'{"seq":3,"life'])
def test_bytes_behind_a_sealed_segment(tmp_path: Path, stray: bytes) -> None:
    """A sealed segment ends at its last newline: a torn tail or zeros there mean that the seal was not durable."""
    paths = rolled(tmp_path)
    with paths[0].open("ab") as file:
        file.write(stray)
    assert (refused(tmp_path).file, refused(tmp_path).good_after) == ("seg-000001.jsonl", 6)


@pytest.mark.fault("foreign lines")
def test_a_segment_of_another_run(tmp_path: Path) -> None:
    """The nonce and the chain tie segments together: one of a namesake does not fit."""
    paths = rolled(tmp_path)
    kept = paths[1].read_bytes()
    for path in (tmp_path / "r").iterdir():
        path.unlink()
    (tmp_path / "r").rmdir()
    rolled(tmp_path)
    paths[1].write_bytes(kept)
    assert refused(tmp_path).file == "seg-000002.jsonl"


def _forged(runs: Path, change: Callable[[Header], Header | list[bytes]]) -> None:
    """Give a log a second segment whose first line follows the chain but says what `change` makes of the header."""
    made(runs, saves=0)
    first, last = eventlog.store(runs).read("r").lines
    assert first.header is not None
    right = Header(eventlog.FORMAT, "r", first.header.nonce, 2, first.header.storage)
    segment(runs, number=2).write_bytes(_frame.build(2, 1, AT, last.sum, change(right)))
    head(runs).unlink()


@pytest.mark.fault("foreign lines")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda right: Header(eventlog.FORMAT, "other", right.nonce, 2, right.storage), "names run 'other'"),
        (lambda right: Header(eventlog.FORMAT, "r", right.nonce, 3, right.storage), "names segment 3"),
        (lambda right: Header(eventlog.FORMAT, "r", "00", 2, right.storage), "another run with the same name"),
        (lambda _: [event(1)], "begins without a header"),
    ],
)
def test_a_header_that_fits_the_chain_and_nothing_else(
    tmp_path: Path,
    change: Callable[[Header], Header | list[bytes]],
    why: str,
) -> None:
    """Each field of a header is compared: a right sum alone does not make it this run's next segment."""
    _forged(tmp_path, change)
    assert why in refused(tmp_path).why


@pytest.mark.fault("odd headers and numbers")
def test_a_header_in_the_middle_of_a_segment(tmp_path: Path) -> None:
    """A header stands first, so the number of a segment never changes inside it."""
    path = made(tmp_path, saves=0)
    first, last = eventlog.store(tmp_path).read("r").lines
    assert first.header is not None
    with path.open("ab") as file:
        file.write(_frame.build(2, 1, AT, last.sum, first.header))
    head(tmp_path).unlink()
    assert "middle of a segment" in refused(tmp_path).why


@pytest.mark.fault("odd headers and numbers")
@pytest.mark.parametrize("life", [3, 9])
def test_a_life_that_jumps(tmp_path: Path, life: int) -> None:
    """A line keeps its predecessor's life or raises it by one; anything else was written by no writer of ours."""
    path = made(tmp_path, saves=0)
    last = eventlog.store(tmp_path).read("r").lines[-1]
    with path.open("ab") as file:
        file.write(_frame.build(2, life, AT, last.sum, [event(1)]))
    head(tmp_path).unlink()
    assert f"life is {life} after 1" in refused(tmp_path).why


@pytest.mark.fault("odd headers and numbers")
@pytest.mark.parametrize(("number", "edition"), [(1, "an earlier"), (3, "a later")])
def test_a_log_of_another_edition(tmp_path: Path, number: int, edition: str) -> None:
    """A number this version does not know is said as such, by reader and writer, and is never called damage."""
    path = made(tmp_path)
    later = lines_of(path)[0].replace(b'"format":2', b'"format":%d,"new":true' % number)
    text = later[: later.index(b',"sum":')]
    path.write_bytes(text + f',"sum":"{_frame.digest(text)}"}}\n'.encode())
    before = files(tmp_path / "r")
    for act in ("read", "open", "scan", "verify"):
        with pytest.raises(eventlog.OtherFormat, match=f"{edition} edition \\(format {number};"):
            getattr(eventlog.store(tmp_path), act)("r")
    assert files(tmp_path / "r") == before


@pytest.mark.fault("odd headers and numbers")
def test_unknown_fields_of_a_header_are_kept(tmp_path: Path) -> None:
    """A later version may say more in its header; an unclean end, which writes the segment anew, keeps every byte."""
    path = made(tmp_path, saves=0)
    later = lines_of(path)[0].replace(b'"parent":null', b'"parent":null,"more":[1]')
    text = later[: later.index(b',"sum":')]
    path.write_bytes(text + f',"sum":"{_frame.digest(text)}"}}\n'.encode())
    head(tmp_path).unlink()
    assert goes_on(tmp_path).seq == 1
    assert b'"more":[1]' in lines_of(path)[0]


@pytest.mark.fault("missing or foreign segment")
def test_files_that_are_not_ours_are_left_alone_and_named(tmp_path: Path) -> None:
    """A foreign file changes nothing, and `verify` names it."""
    made(tmp_path)
    for name in ("notes.txt", "seg-1.jsonl", "seg-0000002.jsonl", "seg-000002.jsonl.bak"):
        (tmp_path / "r" / name).write_bytes(b"mine")
    assert goes_on(tmp_path).seq == 5
    verdict = eventlog.store(tmp_path).verify("r")
    assert verdict.ok
    assert verdict.strangers == ["notes.txt", "seg-0000002.jsonl", "seg-000002.jsonl.bak", "seg-1.jsonl"]


@pytest.mark.fault("file changed by a program")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "CR LF"),
        (lambda data: b"\xef\xbb\xbf" + data, "byte order mark"),
    ],
    ids=["CR LF", "byte order mark"],
)
def test_what_an_editor_or_a_transfer_did_is_named(tmp_path: Path, change: Callable[[bytes], bytes], why: str) -> None:
    """The lines are there, and a person who knows what happened can bring them back."""
    path = made(tmp_path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(eventlog.LogDamaged, match=why):
        eventlog.store(tmp_path).read("r")
    damage = eventlog.store(tmp_path).verify("r").damage
    assert damage is not None
    assert why in damage.why
