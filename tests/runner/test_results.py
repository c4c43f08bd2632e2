"""What a tool may return: the save succeeds, and an effect that happened is never repeated (hazard 14)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import replay
import runner
from tests.runner import stage

ACT = [runner.calls(("act", {})), "over"]


@dataclass
class Point:
    """A value of a user's own type."""

    x: int
    y: object = None


class Odd:
    """A value whose parts raise."""

    def __iter__(self) -> Iterator[int]:
        """Fail."""
        raise RuntimeError


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def numbers() -> Iterator[int]:
    """A generator."""
    yield 1


def recorded(runs: Path, value: object) -> replay.ResultRecorded:
    """What the log says of a call that returned `value`; the run finishes and the call ran once."""
    ran = 0

    @runner.tool
    def act() -> Any:
        nonlocal ran
        ran += 1
        return value

    seen: list[runner.Request] = []

    def last(request: runner.Request) -> runner.Reply:
        seen.append(request)
        return runner.Reply(text="over")

    assert stage.finished(stage.start([ACT[0], last], act, runs=runs)) == "over"
    assert ran == 1
    result = stage.results(runs)["1.0"]
    assert result.how == "ran"
    answered = seen[0].messages[-1]
    assert isinstance(answered, replay.Answered)
    assert answered.results[0].text == result.text
    return result


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (2**70, str(2**70)),
        ({"a": [1, 2.5, "é"]}, '{"a": [1, 2.5, "é"]}'),
        ((1, 2), "[1, 2]"),
        (Point(1, [Point(2)]), '{"x": 1, "y": [{"x": 2, "y": null}]}'),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), '"2026-01-02T03:00:00+00:00"'),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), '"2026-01-02T03:00:00+02:00"'),
        (datetime(2026, 1, 2, 3), '"2026-01-02T03:00:00"'),  # noqa: DTZ001 (without a zone is what it tests)
        (date(2026, 1, 2), '"2026-01-02"'),
        ("a\u2028b\u0085c\rd\0e", "a\u2028b\u0085c\rd\0e"),
    ],
    ids=range(13),
)
def test_what_has_a_json_form_is_recorded_in_it(runs: Path, value: object, text: str) -> None:
    """A string as it is, anything else as JSON; a resumed run sees the same text."""
    result = recorded(runs, value)
    assert (result.text, result.lossy) == (text, False)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("a\ud800b", "a\ufffdb"),
        (["\udfff"], "\ufffd"),
        ({"\ud800": 1}, "\ufffd"),
        ([math.nan, math.inf, -math.inf], '["NaN", "Infinity", "-Infinity"]'),
        (b"\0\xff", "AP8="),
        ({1: 2}, '{"1": 2}'),
        ({3}, "[3]"),
    ],
    ids=range(7),
)
def test_what_had_to_be_bent_is_marked(runs: Path, value: object, part: str) -> None:
    """It stays visible, and the event says that it is not exactly what came."""
    result = recorded(runs, value)
    assert part in result.text
    assert result.lossy


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [{"b": object()}]}, "$.a[0].b"),
        ([numbers()], "$[0]"),
        (nested(65), "[0]"),
        (nested(2000), "[0]"),
        ({"n": 10**4999}, "$.n"),
        ({(1, 2): 3}, "$"),
        ([1, Odd()], "$[1]"),
        (Point(1, lambda: 1), "$.y"),
    ],
    ids=range(8),
)
def test_what_has_no_json_form_names_its_place(runs: Path, value: object, place: str) -> None:
    """The call ran, so it is recorded as run, with a sentence instead of the value."""
    result = recorded(runs, value)
    assert place in result.text
    assert "can't be stored" in result.text
    assert result.lossy


@pytest.mark.parametrize("value", ["é" * 25_000_000, ["a" * 50_000_000], "\0" * 10_000_000])
def test_an_enormous_result_is_cut_and_says_so(runs: Path, value: Any) -> None:
    """50 MB of text: a log that holds it, in bounded lines."""
    result = recorded(runs, value)
    assert "cut" in result.text[-100:]
    assert result.lossy
    assert len(json.dumps(result.text, ensure_ascii=False).encode()) <= (1 << 20) + 100
    assert len(stage.written(runs)) < 2 << 20


def test_eight_large_results_of_a_wave_are_saved(runs: Path) -> None:
    """More than one line may hold: split, outcomes first."""

    @runner.tool(effect="reads")
    def read() -> str:
        return "x" * (5 << 20)

    assert stage.finished(stage.start([runner.calls(*[("read", {})] * 9), "over"], read, runs=runs)) == "over"
    assert len(stage.results(runs)) == 9
    assert runner.read("r", runs).turns == 2


@pytest.mark.parametrize("task", ["\ud800 do it", "x" * (3 << 20), "a\0b\u2028"], ids=range(3))
def test_any_task_can_be_stored(runs: Path, task: str) -> None:
    """A task is text from outside as well."""
    agent = stage.agent(["over"], name="a", instructions="\ud800")
    assert stage.finished(runner.start_sync(agent, task, runs=runs, run="r")) == "over"
    assert len(runner.read("r", runs).task) <= 1 << 20
