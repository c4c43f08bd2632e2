"""`resume(wait="return")`: a run that waits for a time gives its process back."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from tests.support import stage

CALL = [runner.testing.tool_calls(("act", {})), "over"]


@runner.tool
def act(call: runner.Call) -> str:
    """Ask to be called again after a minute, once."""
    if call.n == 1:
        raise runner.ToolFailed("busy", retry_after=60)
    return "done"


def resume(runs: Path, clock: runner.Clock) -> runner.Outcome:
    """One turn of a queue."""
    return runner.resume_sync("r", stage.agent(CALL, act), runs=runs, clock=clock, wait="return")


@pytest.fixture
def left(runs: Path) -> Path:
    """A run that was left before it did anything."""
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(CALL, act, runs=runs, clock=stage.Ticking(), limits=runner.Limits(turns=0))
    return runs


def test_a_wait_is_given_back_and_the_run_goes_on_at_its_end(left: Path) -> None:
    """The lock is free meanwhile, a call that comes too early writes nothing, and nobody sleeps."""
    clock = stage.Ticking()
    waiting: Any = resume(left, clock)
    assert isinstance(waiting, runner.Waiting)
    assert waiting.until >= stage.NOON + timedelta(seconds=60)
    assert eventlog.store(left).holder("r") is None
    before = stage.written(left)
    assert resume(left, clock) == waiting
    assert stage.written(left) == before
    clock.at = waiting.until
    assert stage.finished(resume(left, clock)) == "over"
    assert clock.slept == []


def test_finished_says_until_when_a_run_waits(left: Path) -> None:
    """It is an error with the time as a fact."""
    with pytest.raises(runner.StillWaiting, match="r waits until 2026-01-01 12:0") as raised:
        resume(left, stage.Ticking()).finished()
    assert raised.value.until > stage.NOON


def test_a_deadline_that_comes_before_the_end_of_a_wait_is_when_the_run_goes_on(left: Path) -> None:
    """Called then it stops. It waited on, and a worker to whom it was due opened it again and again."""
    clock, until = stage.Ticking(), stage.NOON + timedelta(seconds=30)
    agent = stage.agent(CALL, act, limits=runner.Limits(until=until))
    waiting: Any = runner.resume_sync("r", agent, runs=left, clock=clock, wait="return")
    assert waiting.until == until
    clock.at = until
    with pytest.raises(runner.errors.Deadline):
        runner.resume_sync("r", agent, runs=left, clock=clock, wait="return")


def test_without_it_the_process_sleeps(left: Path) -> None:
    """As it did."""
    clock = stage.Ticking()
    assert stage.finished(runner.resume_sync("r", stage.agent(CALL, act), runs=left, clock=clock)) == "over"
    assert sum(clock.slept) >= 60


class Suspended(stage.Ticking):
    """A clock of a machine that is suspended for an hour in its first sleep, which that does not shorten."""

    def wall(self) -> datetime:
        """The time of day."""
        return self.at + timedelta(hours=len(self.slept) > 0)


def test_a_wait_ends_soon_after_the_machine_was_suspended_beyond_its_end(left: Path) -> None:
    """The rest of it was slept out, however long ago the run was to go on."""
    clock = Suspended()

    @runner.tool(name="act")
    def busy(call: runner.Call) -> str:
        if call.n == 1:
            raise runner.ToolFailed("busy", retry_after=3600)
        return "done"

    assert stage.finished(runner.resume_sync("r", stage.agent(CALL, busy), runs=left, clock=clock)) == "over"
    assert sum(clock.slept) <= 60
