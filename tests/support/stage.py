"""What these tests share: a clock that nobody waits for, short ways to make agents, and ways to look at a log.

Time is injected, so a test that waits an hour takes no time. A log is looked at through `eventlog` and `replay`, as a
reader in another process would: what a test asserts about the past is on disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import eventlog
import replay
import runner
import runner.testing
from replay.events import ResultRecorded
from runner import Tool

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TASK = "do it"
E = TypeVar("E", bound=replay.Event)


class Ticking(runner.Clock):
    """A clock that moves only when somebody sleeps, and then at once. `slept` are the seconds of each sleep."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at
        self.slept: list[float] = []

    def wall(self) -> datetime:
        """The time it stands at."""
        return self.at

    def monotonic(self) -> float:
        """The same in seconds."""
        return (self.at - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.slept.append(seconds)
        self.at += timedelta(seconds=seconds)
        await asyncio.sleep(0)


def scripted(*script: Any, **options: Any) -> runner.testing.ScriptedModel:
    """A model that answers turn n with the nth of these."""
    return runner.testing.ScriptedModel(script, **options)


def agent(script: Sequence[Any], *tools: Tool, **options: Any) -> runner.Agent:
    """An agent that plays a script."""
    return runner.Agent(**{"name": "agent", **options}, model=scripted(*script), tools=tools)


def start(script: Sequence[Any], *tools: Tool, runs: Path, run: str = "r", **options: Any) -> Any:
    """Start a run of a scripted agent; agent's options and `start`'s may be mixed."""
    given = {
        name: options.pop(name) for name in ("workspace", "clock", "on_question", "watch", "after") if name in options
    }
    return runner.start_sync(agent(script, *tools, **options), TASK, runs=runs, run=run, **given)


def on(runs: str, agent: runner.Agent, **options: Any) -> runner.Outcome:
    """Start the run `r`, or resume it when it exists."""
    if (Path(runs) / "r").exists():
        return runner.resume_sync("r", agent, runs=runs, **options)
    return runner.start_sync(agent, TASK, runs=runs, run="r", **options)


def note(path: str | Path, word: str) -> None:
    """Append a word to a file that outlives the process."""
    with Path(path).open("a") as file:
        file.write(f"{word}\n")


def finished(outcome: object) -> str:
    """The answer of a run that must have finished."""
    assert isinstance(outcome, runner.Finished), outcome
    return outcome.answer


def asked(outcome: object) -> tuple[runner.Question, ...]:
    """The questions of a run that must have paused."""
    assert isinstance(outcome, runner.Paused), outcome
    return outcome.questions


def lines(runs: Path, run: str = "r") -> list[list[replay.AnyEvent]]:
    """The events of each line that has any, as a reader finds them on disk."""
    found = [[replay.decode(raw) for raw in line.events] for line in eventlog.store(runs).read(run).lines]
    return [events for events in found if events]


def events(runs: Path, kind: type[E], run: str = "r") -> list[E]:
    """Every event of one type, in order."""
    return [event for line in lines(runs, run) for event in line if isinstance(event, kind)]


def results(runs: Path, run: str = "r") -> dict[str, ResultRecorded]:
    """Every call's result, in the order of the calls: they end in any. A call that has two fails here."""
    recorded = sorted(events(runs, ResultRecorded, run), key=lambda result: [*map(int, result.call.split("."))])
    found = {result.call: result for result in recorded}
    assert len(found) == len(recorded), recorded
    return found


def key(runs: Path, call: str, run: str = "r") -> str:
    """The idempotency key of a call: made of the run's uid, which its log holds."""
    return runner.key(runner.read_state(run, runs).uid, call)


def written(runs: Path, run: str = "r") -> bytes:
    """The bytes of a log's lines, without the zeros laid ahead."""
    return b"".join(path.read_bytes().rstrip(b"\0") for path in sorted((runs / run).glob("seg-*")))


def within(seconds: float, ready: Callable[[], object]) -> None:
    """Look again and again until something another process or thread does has happened; fail after `seconds`."""
    for _ in ticks(seconds):
        if ready():
            return
    raise AssertionError(f"not within {seconds} s: {ready}")


def ticks(seconds: float) -> Iterator[None]:
    """Moments in which to look, for at most `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.002)
