"""The frame: what is written is what is read, and nothing else is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

import eventlog
from eventlog import _frame
from tests.eventlog.making import AT, event, segment

if TYPE_CHECKING:
    from pathlib import Path

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
EVENTS = st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=5).map(msgspec.json.encode), max_size=4)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive


@hypothesis.settings(max_examples=50)
@hypothesis.given(events=EVENTS, at=TIMES, seq=st.integers(0, 10**18 - 1), life=st.integers(1, 10**9 - 1))
def test_a_line_reads_back_as_it_was_given(events: list[bytes], at: datetime, seq: int, life: int) -> None:
    """Whatever JSON and time a line carries, the reader gives back the very same."""
    data = _frame.build(seq, life, at, "ab" * 16, events)
    line = _frame.parse(data)
    assert (line.seq, line.life, line.at, line.prev) == (seq, life, at, "ab" * 16)
    assert _frame.ordinary(data, seq, life, "ab" * 16) == line
    assert [bytes(raw) for raw in line.events] == events
    assert _frame.compose("r", seq, life, at, "ab" * 16, events) == (data, line)
    assert data.count(b"\n") == 1
    assert list(json.loads(data)) == ["seq", "life", "at", "prev", "events", "sum"]


@pytest.mark.fault("odd characters in text")
@pytest.mark.parametrize(
    "text",
    [
        "\u2028 \u2029 \x85",
        "a\rb\r\nc\nd",
        "e\u0301 \u00e9",
        "\U0001f600",
        "\0" * 2000,
        "\x7f\x1f",
        '"\\',
        "x" * 100_000,
    ],
)
def test_text_that_breaks_other_formats_stays_in_one_line(tmp_path: Path, text: str) -> None:
    """Line separators, NULs and odd characters inside text are one line, equal after a round trip."""
    with eventlog.store(tmp_path).create("r", at=AT, events=[msgspec.json.encode({"text": text})]):
        pass
    reading = eventlog.store(tmp_path).read("r")
    assert len(reading.lines) == 2
    assert json.loads(bytes(reading.lines[1].events[0])) == {"text": text}


@pytest.mark.fault("unstorable content")
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"}{bogus", "not JSON"),
        (b'{"a":1},{"b":2}', "not JSON"),
        (b'{"a":1}]', "not JSON"),
        (b'{"a":"\xff"}', "not JSON"),
        (b'{"a":"\\ud83d"}', "not JSON"),
        (b'{"a":"x\0y"}', "not JSON"),
        (b'{"a":1e400}', "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a":NaN}', "not JSON"),
        (b'{"a":\n1}', "raw newline"),
        (b'{"a":1}\n', "raw newline"),
        (b' {"a":1}', "stands between spaces"),
        (b'{"a":1} ', "stands between spaces"),
        (b'{"a":1}],"events":[{"b":2}', "not JSON"),
        (b"[1]", "not an object"),
        (b"7", "not an object"),
        (b'{"a":' * 129 + b"1" + b"}" * 129, "nested deeper"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested deeper"),
    ],
)
def test_what_could_not_be_read_back_is_refused_before_anything_is_written(
    tmp_path: Path,
    bad: bytes,
    why: str,
) -> None:
    """A save of bad bytes writes nothing and leaves the log alive; the next save goes on."""
    log = eventlog.store(tmp_path).create("r", at=AT, events=[event(0)])
    before = segment(tmp_path).read_bytes()
    with pytest.raises(eventlog.NotStorable, match=why):
        log.append(AT, [event(1), bad])
    assert segment(tmp_path).read_bytes() == before
    assert log.append(AT, [event(2)]).seq == 2
    log.close()
    with pytest.raises(eventlog.NotStorable, match=why):
        eventlog.store(tmp_path).create("other", at=AT, events=[bad])
    assert not (tmp_path / "other").exists()


def test_depth_up_to_the_bound_is_stored(tmp_path: Path) -> None:
    """The bound is a bound, not a guess: the deepest allowed event is read back."""
    deep = b'{"a":' * _frame.MAX_DEPTH + b"1" + b"}" * _frame.MAX_DEPTH
    with eventlog.store(tmp_path).create("r", at=AT, events=[deep]) as log:
        assert bytes(log.lines[1].events[0]) == deep
    assert bytes(eventlog.store(tmp_path).read("r").lines[1].events[0]) == deep


@pytest.mark.fault("line too long")
def test_a_line_above_the_limit_is_refused_and_one_at_it_is_stored(tmp_path: Path) -> None:
    """17 MiB is a clear refusal; exactly the limit is a line like any other."""
    with eventlog.store(tmp_path).create("r", at=AT, events=[event(0)]) as log:
        with pytest.raises(eventlog.NotStorable, match="limit"):
            log.append(AT, [event(1, 17 * 1024 * 1024)])
        small = len(_frame.build(2, 1, AT, "0" * 32, [event(1)]))
        line = log.append(AT, [event(1, eventlog.MAX_LINE - small)])
        with pytest.raises(eventlog.NotStorable, match="limit"):
            log.append(AT, [event(1, eventlog.MAX_LINE - small + 1)])
    assert eventlog.store(tmp_path).read("r").lines[-1] == line


def _resummed(text: bytes) -> bytes:
    return text + f',"sum":"{_frame.digest(text)}"}}\n'.encode()


@pytest.mark.fault("odd numbers and unknown tags")
@pytest.mark.parametrize(
    "text",
    [
        b'{"seq":1e400,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":"7","life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":true,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":1180591620717411303424,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":-1,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":07,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":7.0,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":7,"life":0,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":7,"life":1,"at":"2026-13-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58Z","prev":"%b","events":[]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456+00:00","prev":"%b","events":[]',
        b'{"seq":7, "life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","more":1,"events":[]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[],"more":1',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":{}',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[7]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[{"a":"\xff"}]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[' + b'{"a":' * 5000,
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b"',
        b'{"life":1,"seq":7,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","events":[]',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","header":{"run":"r"}',
        b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b","header":[]',
        b"",
    ],
)
def test_a_line_with_a_right_sum_and_wrong_fields_is_not_a_line(text: bytes) -> None:
    """Odd numbers, unknown or missing fields never crash the reader and never give a number to reuse."""
    whole = text.replace(b"%b", b"0" * 32)
    with pytest.raises(_frame.Bad):
        _frame.parse(_resummed(whole))
    assert _frame.ordinary(_resummed(whole), 7, 1, "0" * 32) is None


def test_a_line_at_its_place_is_bounded_like_any_other() -> None:
    """In depth, in length and in its number."""
    deep = b'{"a":' + b"[" * _frame.MAX_DEPTH + b"]" * _frame.MAX_DEPTH + b"}"
    for seq, content in ((7, deep), (7, b'{"a":"%b"}' % (b"x" * _frame.MAX_LINE)), (10**18, b"{}")):
        line = _frame.build(seq, 1, AT, "0" * 32, [content])
        assert _frame.ordinary(line, seq, 1, "0" * 32) is None
        with pytest.raises(_frame.Bad):
            _frame.parse(line)


@pytest.mark.fault("flipped bit")
@hypothesis.given(data=st.data())
def test_what_is_read_at_its_place_is_what_the_strict_reader_reads(data: Any) -> None:
    """A line is compared with its place before it is taken apart; with a right sum it may say anything else."""
    begin, middle = b'{"seq":7,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"' + b"0" * 32, b'","events":['
    pieces = st.sampled_from(
        [b"{}", b'{"a":1}', b",", b" ", b"]", b"[", b"{", b"}", b"7", b'"sum":"x"', b'"events":[', b'"\xff"', b'"a":']
    )
    made = _resummed(begin + middle + b"".join(data.draw(st.lists(pieces, max_size=6))) + b"]")
    line = _frame.ordinary(made, 7, 1, "0" * 32)
    if line is not None:
        assert line == _frame.parse(made)
    for seq, life, prev in ((8, 1, "0" * 32), (7, 2, "0" * 32), (7, 1, "1" * 32)):
        assert _frame.ordinary(made, seq, life, prev) is None


@pytest.mark.fault("odd numbers and unknown tags")
def test_unknown_events_and_unknown_fields_of_events_are_kept_as_they_came() -> None:
    """The frame knows no event type, so an event of a later version survives byte for byte."""
    later = [b'{"type":"from_the_future","x":[1,2,{"y":null}]}', b'{"no":"type"}', b"{}"]
    assert [bytes(raw) for raw in _frame.parse(_frame.build(3, 2, AT, "0" * 32, later)).events] == later


@pytest.mark.fault("flipped bit")
@hypothesis.given(data=st.data())
def test_no_changed_byte_of_a_line_is_read(data: Any) -> None:
    """Any other byte at any place makes it no line (the sum covers all of it)."""
    line = _frame.build(5, 1, AT, "cd" * 16, [event(1), event(2)])
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != line[place]))
    changed = line[:place] + bytes([other]) + line[place + 1 :]
    with pytest.raises(_frame.Bad):
        _frame.parse(changed)
    assert _frame.ordinary(changed, 5, 1, "cd" * 16) is None


def test_times_are_written_in_utc_with_six_digits(tmp_path: Path) -> None:
    """A reader in another language needs one form: another zone and a full second come out the same way."""
    zone = timezone(timedelta(hours=5, minutes=30))
    with eventlog.store(tmp_path).create(
        "r", at=datetime(2026, 11, 29, 20, 44, 58, tzinfo=zone), events=[event(0)]
    ) as log:
        assert log.at == datetime(2026, 11, 29, 15, 14, 58, tzinfo=UTC)
    assert b'"at":"2026-11-29T15:14:58.000000Z"' in segment(tmp_path).read_bytes()


def test_a_time_without_zone_or_beyond_utc_is_refused(tmp_path: Path) -> None:
    """A naive time means another moment on another machine; the log stays alive."""
    naive = datetime(2026, 11, 29)  # noqa: DTZ001 - that is the fault
    far = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
    with pytest.raises(eventlog.NotStorable, match="zone"):
        eventlog.store(tmp_path).create("r", at=naive, events=[])
    with eventlog.store(tmp_path).create("r", at=AT, events=[event(0)]) as log:
        for at in (naive, far):
            with pytest.raises(eventlog.NotStorable):
                log.append(at, [event(1)])
        assert log.append(AT, [event(1)]).seq == 2
