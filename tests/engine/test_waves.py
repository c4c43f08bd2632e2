"""Waves: consecutive calls that read run side by side, at most eight, their results in one line."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import runner
import runner.testing
from replay.events import AttemptMarked
from replay.messages import ToolResults
from tests.support import stage

PATIENCE = 60.0


class Crowd:
    """Counts how many are inside at once; whoever comes in waits until `wanted` have come."""

    def __init__(self, wanted: int) -> None:
        self.most = self.inside = 0
        self.order: list[str] = []
        self._barrier = threading.Barrier(wanted)
        self._mutex = threading.Lock()

    def enter(self, name: str) -> None:
        """Come in, wait for the others, go out. Raises when they do not come."""
        with self._mutex:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.order.append(name)
        self._barrier.wait(PATIENCE)
        with self._mutex:
            self.inside -= 1


def reading(crowd: Crowd) -> runner.Tool:
    """A sync tool that reads, in the crowd."""

    @runner.tool(effect="reads")
    def look(x: int = 0) -> int:
        crowd.enter(f"look {x}")
        return x

    return look


def acting(crowd: Crowd) -> runner.Tool:
    """A tool that changes something, in the crowd."""

    @runner.tool
    def act() -> str:
        crowd.enter("act")
        return "done"

    return act


def test_reads_run_side_by_side_and_their_results_share_a_line(runs: Path) -> None:
    """Threads meet at a barrier that only all of them together can pass."""
    crowd = Crowd(3)
    script = [runner.testing.tool_calls(*(("look", {"x": x}) for x in range(3))), "over"]
    assert stage.finished(stage.start(script, reading(crowd), runs=runs)) == "over"
    kinds = [[type(event).__name__ for event in line] for line in stage.lines(runs)]
    assert ["ReplySaved", *["AttemptMarked"] * 3] in kinds
    assert [*["ResultRecorded"] * 3, "ModelAsked"] in kinds
    assert [result.text for result in stage.results(runs).values()] == ["0", "1", "2"]


def test_async_reads_run_side_by_side(runs: Path) -> None:
    """The same for coroutines, each with its own call in its context."""
    inside = asyncio.Event()
    seen: list[str] = []

    @runner.tool(effect="reads")
    async def wait(call: runner.Call) -> str:
        await asyncio.wait_for(inside.wait(), PATIENCE)
        return call.id

    @runner.tool(effect="reads")
    async def ring() -> str:
        inside.set()
        await asyncio.sleep(0)
        seen.append(runner.current_call().id)
        return "rung"

    script = [runner.testing.tool_calls(("wait", {}), ("ring", {}), ("ring", {})), "over"]
    assert stage.finished(stage.start(script, wait, ring, runs=runs)) == "over"
    assert stage.results(runs)["1.0"].text == "1.0"
    assert seen == ["1.1", "1.2"]


def test_a_wave_has_eight_at_most(runs: Path) -> None:
    """Sixteen reads are two waves; an agent that asks for a hundred files must not open them all."""
    crowd = Crowd(8)
    script = [runner.testing.tool_calls(*(("look", {"x": x}) for x in range(16))), "over"]
    assert stage.finished(stage.start(script, reading(crowd), runs=runs)) == "over"
    assert crowd.most == 8
    marked = [sum(isinstance(e, AttemptMarked) for e in line) for line in stage.lines(runs)]
    assert [n for n in marked if n] == [8, 8]


def test_whatever_changes_something_runs_alone_and_in_order(runs: Path) -> None:
    """Two effects never overlap, and no read overtakes one."""
    crowd = Crowd(1)
    script = [
        runner.testing.tool_calls(("look", {"x": 1}), ("act", {}), ("act", {}), ("look", {"x": 2}), ("act", {})),
        "over",
    ]
    assert stage.finished(stage.start(script, reading(crowd), acting(crowd), runs=runs)) == "over"
    assert crowd.most == 1
    assert crowd.order == ["look 1", "act", "act", "look 2", "act"]
    in_flight = [sum(isinstance(e, AttemptMarked) for e in line) for line in stage.lines(runs)]
    assert [n for n in in_flight if n] == [1] * 5


def test_a_read_that_fails_in_a_wave_fails_alone(runs: Path) -> None:
    """Its neighbours' results are kept, in the order of the calls."""

    @runner.tool(effect="reads")
    def look(x: int) -> int:
        return 10 // x

    script = [runner.testing.tool_calls(*(("look", {"x": x}) for x in (5, 0, 2))), "over"]
    assert stage.finished(stage.start(script, look, runs=runs)) == "over"
    by_call = stage.results(runs)
    assert [by_call[f"1.{i}"].how for i in range(3)] == ["ran", "failed", "ran"]
    answered = runner.read_state("r", runs).messages[2]
    assert isinstance(answered, ToolResults)
    assert [result.call for result in answered.results] == ["1.0", "1.1", "1.2"]


def test_a_call_that_cannot_run_does_not_break_a_wave_up_wrongly(runs: Path) -> None:
    """An unknown tool between two reads gets its own result; each read still runs once."""
    crowd = Crowd(1)
    script = [runner.testing.tool_calls(("look", {"x": 1}), ("nothing", {}), ("look", {"x": 2})), "over"]
    assert stage.finished(stage.start(script, reading(crowd), runs=runs)) == "over"
    assert crowd.order == ["look 1", "look 2"]
    assert stage.results(runs)["1.1"].how == "invalid"
