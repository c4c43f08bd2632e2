"""Flushes and bytes, counted at the disk's seam: what a save, a turn, a file and a question cost on any machine.

The stored bytes may grow by a twentieth before somebody must say why, in `figures.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
from benchmarks import arms, history, models
from eventlog._preallocate import LAID
from replay.values import Effect

FIGURES = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))
MORE = 1.05


class Counting(eventlog.Disk):
    """The disk, which counts the flushes of saves and the bytes handed to write."""

    def __init__(self) -> None:
        self.silent = False
        self.forget()

    def forget(self) -> None:
        """Begin to count."""
        self.flushes = self.lines = self.zeros = self.heads = self.laid = 0

    def datasync(self, fd: int) -> None:  # noqa: ARG002 (the seam's own signature)
        """Count it, and flush nothing: what is counted is what was asked for."""
        self.flushes += not self.silent

    def sync(self, fd: int) -> None:
        """Flush nothing."""

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Count the bytes by what they are."""
        written = super().write_some(fd, data, offset)
        if self.silent:
            return written
        if not any(bytes(data[:64])):
            self.zeros += written
            self.laid += 1
        elif bytes(data).startswith(b'{"state":'):
            self.heads += written
        else:
            self.lines += written
        return written


def saved(path: Path, count: int) -> Counting:
    """Save so many lines of a history; what creating the run took is not counted."""
    disk = Counting()
    first = [replay.encode(event) for event in history.opening()]
    with eventlog.Directory(path, disk=disk).create("r", at=history.AT, events=first) as log:
        disk.forget()
        for events in history.encoded(count):
            log.append(history.AT, events)
        disk.silent = True
    return disk


def test_a_save_costs_one_flush_and_every_64_kib_of_zeros_one_more(tmp_path: Path) -> None:
    """A save changes no size and needs no journal; the zeros it goes into were laid and flushed before."""
    disk = saved(tmp_path, 142)
    assert disk.flushes == 142 + disk.laid
    assert disk.laid <= disk.lines // LAID + 1


@pytest.mark.parametrize("count", [142, 1000])
def test_the_bytes_of_a_history_are_those_that_are_stored(tmp_path: Path, count: int) -> None:
    """Bytes on the way to the disk grow only when somebody says so."""
    disk, stored = saved(tmp_path, count), FIGURES["bytes"][str(count)]
    assert disk.lines <= stored["lines"] * MORE
    assert disk.heads == 256 * count
    assert disk.zeros <= disk.lines + 2 * (LAID + 4096)


def flushes(path: Path, turns: int, tool: runner.Tool, calls: int = 1, **options: Any) -> int:
    """The flushes of a run of so many turns."""
    disk = Counting()
    model = models.Model(turns, calls=calls, size=100)
    runner.start_sync(
        models.agent(model, tool), "go", runs=eventlog.Directory(path, disk=disk), run=f"r{turns}", **options
    )
    return disk.flushes - disk.laid


def turn(path: Path, tool: runner.Tool, calls: int = 1, **options: Any) -> float:
    """The flushes of one turn: what three turns more come to."""
    return (flushes(path, 4, tool, calls, **options) - flushes(path, 1, tool, calls, **options)) / 3


def looks(effect: Effect, **options: Any) -> runner.Tool:
    """A tool that returns at once."""

    async def look(at: str) -> str:
        return at

    return runner.tool(effect=effect, **options)(look)


@pytest.mark.parametrize(
    ("effect", "calls", "expected"),
    [
        ("reads", 1, 2),
        ("reads", 8, 2),
        ("reads", 16, 3),
        ("non_idempotent", 1, 2),
        ("non_idempotent", 4, 5),
        ("non_idempotent", 16, 17),
    ],
)
def test_a_turn_costs_a_flush_for_each_call_and_one_more_and_a_wave_counts_as_one(
    tmp_path: Path, effect: Effect, calls: int, expected: int
) -> None:
    """What came back and what is about to happen share a line; up to eight reads run side by side."""
    assert turn(tmp_path, looks(effect), calls) == expected


def test_a_question_costs_two_flushes_more(tmp_path: Path) -> None:
    """The question with the pause, and the answer."""
    asked = looks("non_idempotent", approval=True)
    answers: Callable[[runner.Question], runner.Answer] = lambda _: runner.Answer("approve", "olga")  # noqa: E731
    assert turn(tmp_path, asked, on_question=answers) == 2 + 2


def test_a_file_costs_one_flush_more(tmp_path: Path) -> None:
    """Its content is intended, durably, before it is written; that it is written travels with the result."""
    place = tmp_path / "place"
    place.mkdir()

    @runner.tool(effect="idempotent")
    def look(at: str, call: runner.Call) -> str:
        assert call.workspace is not None
        call.workspace.write_text(f"{call.run}-{call.id}.txt", at)
        return at

    assert turn(tmp_path, look, workspace=place) == 2 + 1


def test_the_bytes_of_a_long_conversation_stay_linear(tmp_path: Path) -> None:
    """A request names what was said so far by a digest, so no turn writes the conversation again."""
    results = models.texts(5000)

    @runner.tool(effect="reads")
    async def look(at: str) -> str:
        return results[len(at)]

    model = models.Model(60, size=300)
    runner.start_sync(
        models.agent(model, look), results[0] * 20, runs=eventlog.Directory(tmp_path, disk=Counting()), run="r"
    )
    lines = eventlog.store(tmp_path).read("r").lines
    sizes = [sum(map(len, line.events)) for line in lines]
    log = sum(path.stat().st_size for path in (tmp_path / "r").glob("seg-*"))
    assert log / sum(sizes) <= 1.06
    assert max(sizes[-20:-3]) <= max(sizes[3:20]) * MORE


def test_the_arms_of_a_benchmark_are_held_against_each_other_round_by_round() -> None:
    """A slow minute hits every arm of its round, so it must not show in the ratio."""
    slow: Sequence[float] = (1.0, 9.0, 1.0)
    assert arms.ratio([2 * value for value in slow], slow) == 2
