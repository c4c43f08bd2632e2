"""Keys and intents over time: what a service remembers, and what was done before (spec rows 20 and 24; hazard 35)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import replay
import runner
from tests.runner import stage
from tests.runner.climbing import ACT, HOUR, Killed, Once, keyed


def test_a_second_call_of_an_intent_that_happened_is_refused_with_the_firsts_result(runs: Path) -> None:
    """Row 24: whatever id the model gave it, in this reply or a later one; one that failed leaves the intent free."""
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

    script = [runner.calls(call("fails"), call("one"), call("two")), runner.calls(call("three")), "over"]
    assert stage.finished(stage.start(script, issue, runs=runs)) == "over"
    results = stage.results(runs)
    assert [result.how for result in results.values()] == ["failed", "ran", "refused", "refused"]
    assert did == ["fails", "one"]
    assert "issue one" in results["2.0"].text
    assert results["2.0"].first == "1.1"


def test_a_key_that_the_service_has_forgotten_counts_as_none(runs: Path) -> None:
    """Row 20: its age counts from the first marker; after an hour a repeat may do it twice."""
    seen: list[str] = []
    old = runner.tool(effect="keyed", remembers=HOUR, name="act")(keyed(seen))

    class Late(stage.Ticking):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds + 3600)

    (question,) = stage.asked(stage.start(ACT, old, runs=runs, clock=Late()))
    assert (question.kind, len(seen)) == ("settle", 1)


def test_a_clock_set_back_makes_every_older_key_expired(runs: Path) -> None:
    """Hazard 35: a year back between two lives; the log's time goes on, and a wait still lasts what it lasts."""
    seen: list[str] = []
    old = runner.tool(effect="keyed", remembers=HOUR, name="act")(keyed(seen))

    with pytest.raises(KeyboardInterrupt):
        stage.start(ACT, old, runs=runs, clock=Killed())
    clock = stage.Ticking(stage.NOON - timedelta(days=365))
    (question,) = stage.asked(runner.resume_sync("r", stage.agent(ACT, old), runs=runs, clock=clock))
    assert (question.kind, len(seen)) == ("settle", 1)
    assert [resumed.clock_back for resumed in stage.events(runs, replay.RunResumed)] == [True]
    state = runner.read("r", runs)
    assert state.at is not None
    assert state.at >= stage.NOON


def test_a_wait_lasts_as_long_as_it_lasts_when_the_clock_is_set_back(runs: Path) -> None:
    """Hazard 35: the monotonic clock carries it on."""

    class Back(stage.Ticking):
        def wall(self) -> Any:
            return super().wall() - timedelta(days=365 if self.slept else 0)

    clock = Back()
    once = Once(1, runner.Missing(), lands_within=30)
    assert stage.finished(stage.start(ACT, once.tool, runs=runs, clock=clock)) == "over"
    assert clock.slept == [30.0]
