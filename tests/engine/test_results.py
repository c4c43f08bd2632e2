"""What a tool may return: the save succeeds, and an effect that happened is never repeated."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.events import ResultRecorded
from replay.messages import ToolResults
from tests.support import stage

pytestmark = [pytest.mark.fault("unstorable content")]

ACT = [runner.testing.tool_calls(("act", {})), "over"]


def recorded(runs: Path, value: object) -> ResultRecorded:
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
    assert isinstance(answered, ToolResults)
    assert answered.results[0].text == result.text
    return result


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("a\ud800b", "a\ufffdb"),
        (["\udfff"], "\ufffd"),
        ({"\ud800": 1}, "\ufffd"),
        ([math.nan, math.inf, -math.inf], '["NaN", "Infinity", "-Infinity"]'),
        (b"\0\xff", "AP8="),
    ],
    ids=range(5),
)
def test_what_had_to_be_bent_is_marked(runs: Path, value: object, part: str) -> None:
    """It stays visible, and the event says that it is not exactly what came."""
    result = recorded(runs, value)
    assert part in result.text
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

    assert (
        stage.finished(stage.start([runner.testing.tool_calls(*[("read", {})] * 9), "over"], read, runs=runs)) == "over"
    )
    assert len(stage.results(runs)) == 9
    assert runner.read_state("r", runs).turns == 2


@pytest.mark.parametrize("task", ["\ud800 do it", "x" * (3 << 20), "a\0b\u2028"], ids=range(3))
def test_any_task_can_be_stored(runs: Path, task: str) -> None:
    """A task is text from outside as well."""
    agent = stage.agent(["over"], name="a", instructions="\ud800")
    assert stage.finished(runner.start_sync(agent, task, runs=runs, run="r")) == "over"
    assert len(runner.read_state("r", runs).task) <= 1 << 20
