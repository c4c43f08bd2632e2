"""The verdict: each segment, the head, torn or damaged and where, the storage, and the sum to keep elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

import eventlog
from tests.eventlog.making import AT, OPENING, event, goes_on, head, heads, lines_of, made, segment

if TYPE_CHECKING:
    from pathlib import Path


def test_a_good_log(tmp_path: Path) -> None:
    """Everything is in order, and the last sum is given to be kept."""
    path = made(tmp_path)
    goes_on(tmp_path)
    lines = eventlog.store(tmp_path).read("r").lines
    verdict = eventlog.store(tmp_path).verify("r")
    size = path.stat().st_size
    assert (verdict.ok, verdict.seq, verdict.sum, verdict.lives, verdict.head) == (True, 5, lines[-1].sum, 2, "closed")
    assert [(s.file, s.lines, s.first, s.last, s.bytes, s.size, s.zeros) for s in verdict.segments] == [
        ("seg-000001.jsonl", 6, 0, 5, size, size, 0),
    ]
    assert (verdict.torn, verdict.damage, verdict.expected, verdict.strangers) == (None, None, None, [])
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=eventlog.Verdict) == verdict


def test_a_live_log_has_zeros_ahead_and_an_open_head(tmp_path: Path) -> None:
    """That is how a log looks whose writer is alive, or died."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[OPENING])
    verdict = eventlog.store(tmp_path).verify("r")
    log.close()
    assert (verdict.ok, verdict.head) == (True, "open")
    assert verdict.segments[0].zeros > 60_000
    assert verdict.segments[0].size == verdict.segments[0].bytes + verdict.segments[0].zeros


def test_a_sum_kept_elsewhere_is_found_or_its_absence_is_a_finding(tmp_path: Path) -> None:
    """The chain shows tampering only to someone who kept a later sum: a log rewritten whole is caught by it."""
    made(tmp_path)
    kept = [line.sum for line in eventlog.store(tmp_path).read("r").lines]
    for total in kept:
        assert eventlog.store(tmp_path).verify("r", expect=total).expected is True
    for path in (tmp_path / "r").iterdir():
        path.unlink()
    (tmp_path / "r").rmdir()
    made(tmp_path, size=21)
    assert eventlog.store(tmp_path).verify("r").ok
    verdict = eventlog.store(tmp_path).verify("r", expect=kept[-1])
    assert (verdict.ok, verdict.expected, verdict.damage) == (False, False, None)
    assert "expected sum" in verdict.findings[0]


def test_a_torn_log_is_in_order_and_says_where(tmp_path: Path) -> None:
    """Torn is normal: the verdict is good, and the finding tells how much never finished."""
    found = heads(tmp_path, saves=2)
    lines = lines_of(segment(tmp_path))
    good = b"".join(lines[:-1])
    segment(tmp_path).write_bytes(good + lines[-1][:33])
    head(tmp_path).write_bytes(found[-2])
    verdict = eventlog.store(tmp_path).verify("r")
    assert verdict.ok
    assert verdict.torn == eventlog.Torn("seg-000001.jsonl", len(good), 33)
    assert f"33 bytes of a save that never finished, at byte {len(good)}" in verdict.findings[0]


def test_a_damaged_log_gives_its_good_prefix_and_the_place(tmp_path: Path) -> None:
    """The verdict says what can still be trusted, instead of raising."""
    path = made(tmp_path)
    lines = lines_of(path)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"n", b"m", 1), *lines[3:]]))
    verdict = eventlog.store(tmp_path).verify("r")
    assert (verdict.ok, verdict.seq) == (False, 1)
    assert verdict.damage is not None
    assert (verdict.damage.offset, verdict.damage.good_after) == (len(lines[0] + lines[1]), 2)
    assert "damaged" in verdict.findings[0]


@pytest.mark.parametrize("content", [b"", b"x\n"])
def test_a_log_without_one_good_line(tmp_path: Path, content: bytes) -> None:
    """Even then there is a verdict."""
    made(tmp_path).write_bytes(content)
    verdict = eventlog.store(tmp_path).verify("r", expect="00")
    assert (verdict.ok, verdict.seq, verdict.sum, verdict.lives, verdict.storage) == (False, -1, "", 0, None)
    assert (verdict.segments[0].first, verdict.segments[0].last) == (-1, -1)


def test_a_missing_head_is_a_finding(tmp_path: Path) -> None:
    """Without the witness a lost last line cannot be told from one that never was, and the verdict says so."""
    made(tmp_path)
    head(tmp_path).unlink()
    verdict = eventlog.store(tmp_path).verify("r")
    assert (verdict.ok, verdict.head) == (True, "missing")
    assert "cannot be told" in verdict.findings[0]


def test_event_bytes_do_not_matter_to_the_verdict(tmp_path: Path) -> None:
    """The log knows no event type: verification needs none."""
    with eventlog.store(tmp_path).create("r", at=AT, events=[b"{}"]) as log:
        log.append(AT, [b'{"anything":[null]}', event(1)])
    assert eventlog.store(tmp_path).verify("r").ok
