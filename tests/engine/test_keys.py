"""Keys and intents over time: what a service remembers, and what was done before."""

from __future__ import annotations

import fcntl
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.events import RunResumed
from tests.engine.climbing import ACT, Killed, Once, keyed
from tests.support import stage


def test_a_second_call_of_an_intent_that_happened_is_refused_with_the_firsts_result(runs: Path) -> None:
    """Whatever id the model gave it, in this reply or a later one; one that failed leaves the intent free."""
    did: list[str] = []

    @runner.tool(once_per=("cause",))
    def issue(cause: str, title: str) -> str:
        did.append(title)
        assert cause == "c"
        if title == "fails":
            raise runner.ToolFailed("no")
        return f"issue {title}"

    def call(title: str) -> tuple[str, dict[str, Any]]:
        return ("issue", {"cause": "c", "title": title})

    script = [
        runner.testing.tool_calls(call("fails"), call("one"), call("two")),
        runner.testing.tool_calls(call("three")),
        "over",
    ]
    assert stage.finished(stage.start(script, issue, runs=runs)) == "over"
    results = stage.results(runs)
    assert [result.how for result in results.values()] == ["failed", "ran", "refused", "refused"]
    assert did == ["fails", "one"]
    assert "issue one" in results["2.0"].text
    assert results["2.0"].first == "1.1"


@pytest.mark.fault("clock set back")
def test_a_wait_lasts_as_long_as_it_lasts_when_the_clock_is_set_back(runs: Path) -> None:
    """The monotonic clock carries it on."""

    class Back(stage.Ticking):
        def wall(self) -> Any:
            return super().wall() - timedelta(days=365 if self.slept else 0)

    clock = Back()
    once = Once(1, runner.Missing(), visible_within=30)
    assert stage.finished(stage.start(ACT, once.tool, runs=runs, clock=clock)) == "over"
    assert clock.slept == [30.0]


@pytest.mark.fault("forked child")
def test_a_resume_says_that_a_child_of_the_process_before_still_runs(runs: Path) -> None:
    """It has the shared lock on the run's directory, which it inherited."""
    put = runner.tool(effect="idempotent", name="act")(keyed([]))
    with pytest.raises(KeyboardInterrupt):
        stage.start(ACT, put, runs=runs, clock=Killed())
    inherited = os.open(runs / "r", os.O_RDONLY)
    try:
        fcntl.flock(inherited, fcntl.LOCK_SH)
        with pytest.raises(KeyboardInterrupt):
            runner.resume_sync("r", stage.agent(ACT, put), runs=runs, clock=Killed())
    finally:
        os.close(inherited)
    assert [resumed.lease_lost for resumed in stage.events(runs, RunResumed)] == [True]
