"""Events and states to bytes and back: the same value, or an error that says what could not be kept."""

from __future__ import annotations

import contextlib
import json
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import replay
from replay import NotFaithful, Undecodable
from replay.events import LimitsChanged, ModelFailed, ResultRecorded, RunStopped, UnknownEvent, WaitUntil
from replay.messages import UserMessage
from replay.values import Limits
from tests.replay import positions
from tests.replay.values import EVENTS, TEXT, drawn, events
from tests.support.random_walk import RandomWalk
from tests.support.walks import walks

STOP = RunStopped(reason="r")
WAIT = WaitUntil(until=datetime(2026, 1, 1, tzinfo=UTC), why="model")
FAILED = ModelFailed(error="e", transient=True)
LIMITS = LimitsChanged(limits=Limits())
RESULT = ResultRecorded(call="1.0", how="ran", text="t", n=1)
WRONG = (object(), None, True, 7, 7.5, "7", b"7", ["7"], ("7",), {"7": 7}, math.nan, "\ud800", 2**70, {7})


@settings(max_examples=80)
@given(events())
def test_an_event_comes_back_from_its_bytes_as_it_was(event: replay.Event) -> None:
    """What a later life folds is what this one did."""
    raw = replay.encode(event)
    assert replay.decode(raw) == event
    assert b"\n" not in raw
    assert b"\x00" not in raw
    assert json.loads(raw)["type"] == replay.tag(event)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_is_drawn_and_kept(kind: type[replay.Event]) -> None:
    """The property above is about all of them, not about the ones that are easy to draw."""

    @settings(max_examples=10)
    @given(drawn(msgspec.inspect.type_info(kind)))
    def kept(event: replay.Event) -> None:
        assert isinstance(event, kind)
        assert replay.decode(replay.encode(event)) == event

    kept()


@pytest.mark.parametrize("event", [p.event for p in positions.POSITIONS], ids=replay.tag)
def test_a_field_of_a_wrong_type_is_refused_in_memory_or_kept_but_never_bent(event: replay.Event) -> None:
    """A constructor checks no types; a resume is too late to find out."""
    for name in event.__struct_fields__:
        for wrong in WRONG:
            made = replace(event, **{name: wrong})
            with contextlib.suppress(NotFaithful):
                assert replay.decode(replay.encode(made)) == made
        with pytest.raises(NotFaithful):
            replay.encode(replace(event, **{name: object()}))


@pytest.mark.parametrize(
    "event",
    [
        replace(FAILED, retry_after=math.nan),
        replace(FAILED, retry_after=math.inf),
        replace(LIMITS, limits=Limits(dollars=math.nan)),
        replace(RESULT, text="\ud800"),
        replace(RESULT, n=1.5),
        replace(RESULT, n="1"),
        replace(RESULT, lossy=1),
        replace(RESULT, how="maybe"),
        replace(STOP, detail=None),
        replace(WAIT, until="2026-01-01T00:00:00Z"),
        replace(WAIT, why=b"model"),
        replace(positions.STARTED, history=[UserMessage("list, not tuple")]),
        replace(positions.STARTED, history=(UserMessage("\udfff"),)),
        replace(positions.ACCEPTED, files=({"path": "f", "sha256": None},)),
    ],
    ids=range(14),
)
def test_what_json_would_bend_is_not_faithful(event: replay.Event) -> None:
    """NaN becomes null, a number a string, a lone surrogate an error in whoever reads: nothing of it is written."""
    with pytest.raises(NotFaithful, match=replay.tag(event)):
        replay.encode(event)


@pytest.mark.fault("odd characters in text")
@pytest.mark.parametrize(
    "text", ["\u2028\u2029\x85\r\n\t", "\x00" * 2000, "e\u0301 \U0001f600", '"\\/', "\uffff\ufffe"]
)
def test_awkward_text_stays_on_one_line_and_comes_back(text: str) -> None:
    """Readers that split at other line ends than ours must not tear an event."""
    raw = replay.encode(replace(RESULT, text=text))
    assert b"\n" not in raw
    assert replay.decode(raw) == replace(RESULT, text=text)


def test_a_moment_keeps_its_microseconds_and_its_instant_in_any_zone() -> None:
    """Waits are compared with it."""
    east = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    back = replay.decode(replay.encode(replace(WAIT, until=east)))
    assert isinstance(back, WaitUntil)
    assert back.until == east


TAGS = TEXT.filter(lambda tag: tag not in {str(kind.__struct_config__.tag) for kind in EVENTS})
PARTS = st.dictionaries(TEXT.filter(lambda name: name not in {"type", "ignorable"}), st.integers() | TEXT, max_size=3)


@given(TAGS, st.none() | st.booleans(), PARTS, st.sampled_from(((",", ":"), (" , ", " : "))))
def test_an_event_of_a_later_version_is_kept_byte_for_byte(
    tag: str, ignorable: bool | None, rest: dict[str, Any], spaces: tuple[str, str]
) -> None:
    """A version must not lose what it does not understand, spelling included."""
    whole = rest | {"type": tag} | ({} if ignorable is None else {"ignorable": ignorable})
    raw = json.dumps(whole, separators=spaces).encode()
    event = replay.decode(raw)
    assert event == UnknownEvent(tag, raw, ignorable=bool(ignorable))
    assert (replay.encode(event), replay.tag(event)) == (raw, tag)


def test_an_ignorable_event_changes_nothing_and_any_other_is_remembered_by_its_tag() -> None:
    """Whoever opens the run must know whether it may be continued."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for state in positions.STATES:
        assert replay.step(state, UnknownEvent("later", b"{}", ignorable=True), at) == state
        after = replay.fold(state, at, [UnknownEvent(tag, b"{}", ignorable=False) for tag in ("a", "b")])
        assert after == replace(state, unknown=("a", "b"))


def test_a_field_of_a_later_version_in_a_known_event_is_passed_over() -> None:
    """New fields have defaults and are optional to know."""
    assert replay.decode(b'{"type":"run_stopped","reason":"r","later":1}') == STOP


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"type":"run_stopped"}', "run_stopped: .*reason"),
        (b'{"type":"run_stopped","reason":7}', r"run_stopped: .*\$.reason"),
        (b'{"type":"run_stopped","reason":"\xff"}', "run_stopped: .*UTF-8"),
        (b'{"type":"attempt_marked","call":"1.0","n":1e400,"key":"k","effect":"reads"}', "attempt_marked: "),
        (b'{"reason":"r"}', "type"),
        (b'{"type":7}', r"\$.type"),
        (b'{"type":"later","ignorable":"yes"}', r"\$.ignorable"),
        (b"[]", "object"),
        (b"", "truncated"),
        (b'{"type":"later"', "truncated"),
        (b"\xff", "malformed"),
        # Python 3.14 goes as deep as the stack allows, so it comes to the end.
        (b'{"type":"run_stopped","reason":"r","x":' + b"[" * 100_000, "recursion|truncated"),
        (b'{"type":"later","x":' + b"[" * 100_000, "recursion|truncated"),
    ],
    ids=range(13),
)
def test_what_no_version_wrote_is_undecodable_and_names_its_line(raw: bytes, why: str) -> None:
    """A known tag with other fields is damage or a forgery, never a later version."""
    with pytest.raises(Undecodable, match=f"(?s){why}") as undecodable:
        replay.decode(raw, seq=41)
    assert undecodable.value.seq == 41
    assert "an event of line 41 can't be decoded" in str(undecodable.value)
    assert "an event can't be decoded" in str(Undecodable(None, "w"))


@pytest.mark.parametrize(
    "error",
    [replay.IllegalEvent(3, "run_started", "done", "why"), NotFaithful("run_stopped", "why"), Undecodable(None, "why")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling_and_says_what_to_do_next(error: replay.ReplayError) -> None:
    """It may cross processes; its data are arguments, its hint is for whoever reads it."""
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert (type(back), back.args, str(back), vars(back)) == (type(error), error.args, str(error), vars(error))
    assert error.hint.endswith(".")


@pytest.mark.fault("a snapshot of other bytes")
@settings(max_examples=25)
@given(walks(deploys=True))
def test_a_state_comes_back_from_its_bytes_as_it_was(walk: RandomWalk) -> None:
    """A resume from a snapshot and one from the whole log must hold the same."""
    state = walk.story.state
    assert replay.restore(replay.dump(state)) == state
    half = replay.load(walk.story.lines[: len(walk.story.lines) // 2])
    again = replay.restore(replay.dump(half))
    assert again is not None
    assert replay.load(walk.story.lines[len(walk.story.lines) // 2 :], again) == state


@pytest.mark.fault("a snapshot of other bytes")
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"turns":"x"}', b'{"messages":[{"type":"nope"}]}'])
def test_bytes_that_are_no_state_give_none(data: bytes) -> None:
    """A snapshot is a cache: what can't be read is passed over."""
    assert replay.restore(data) is None
