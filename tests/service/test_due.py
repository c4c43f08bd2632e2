"""When a run is due that nobody holds: its status says so to every worker."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from runner import ModelError
from tests.service import scenes
from tests.support import stage


def wake(runs: Path) -> datetime | None:
    """When somebody must look at the run."""
    (info,) = runner.list_runs(runs)
    assert info.status is not None
    return info.status.wake


def test_after_stops_in_a_row_because_the_model_is_down_a_run_is_due_later_each_time(runs: Path) -> None:
    """After 1, 5, 15, 60 and 60 minutes; a reply begins the count anew."""

    @runner.tool(effect="reads")
    def act() -> str:
        return "done"

    clock = stage.Ticking()
    with pytest.raises(runner.errors.TurnLimit):
        stage.start([], act, runs=runs, clock=clock, limits=runner.Limits(turns=0))
    delays: list[float] = []
    down = ModelError("overloaded")
    scripts: list[list[Any]] = [[down]] * 5 + [[scenes.CALL, down]] * 2
    for script in scripts:
        with pytest.raises(runner.errors.ModelUnavailable):
            runner.resume_sync("r", stage.agent(script, act), runs=runs, clock=clock)
        when = wake(runs)
        assert when is not None
        delays.append((when - clock.at) / timedelta(minutes=1))
    assert delays == [1, 5, 15, 60, 60, 1, 5]


def test_a_failure_for_good_is_not_tried_again_by_itself(runs: Path) -> None:
    """A wrong key does not become right by waiting."""
    with pytest.raises(runner.errors.ModelUnavailable):
        stage.start([ModelError("no such model", transient=False)], runs=runs, clock=stage.Ticking())
    assert wake(runs) is None
