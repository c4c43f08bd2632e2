"""`kill_sweep` of a family: real processes die at points of a parent and of its children."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import runner
from runner import testing
from tests.support.figures import FIGURES
from tests.testing import family


def swept(points: int, *, only: str = "") -> testing.SweepReport:
    """Kill the office."""
    return testing.kill_sweep(
        environment=family.Posted,
        agent=family.office,
        task=family.TASK,
        effects=family.Posted.counts,
        points=points,
        only=only,
    )


@pytest.mark.fault("SIGKILL in a child run")
def test_a_process_can_be_killed_at_what_a_child_does() -> None:
    """A point is named by the path to the child; after a death there the child is carried on with its parent."""
    points = swept(2).points
    for part in ("model turn 1, before", "model turn 1.0:1, after", "question 1.0:1.0-approve, before"):
        assert part in points
    killed = swept(0, only=f"kill:{points.index('tool send_bob 1.1:1.0, after')}")
    assert not killed.failures, str(killed)


@pytest.mark.fault("a process that hangs")
def test_a_process_that_hangs_is_ended_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that waited for it would never say anything."""
    monkeypatch.setattr("runner.testing._killed_run.PATIENCE", 0.5)

    @runner.tool
    def wait() -> str:
        """Wait for what never comes."""
        threading.Event().wait()
        return ""

    model = testing.ScriptedModel([testing.tool_calls(("wait", {})), "done"])
    with pytest.raises(testing.NotRepeatable, match="it wrote nothing to its log for"):
        testing.kill_sweep(
            environment=family.Posted,
            agent=lambda _: runner.Agent(name="waits", model=model, tools=[wait]),
            task="Wait.",
            effects=family.Posted.counts,
        )


@pytest.mark.parametrize("id_", ["kill", "kill:x", "memory:3", "kill:9999"])
def test_an_id_that_no_scenario_has_is_said(id_: str) -> None:
    """A sweep of nothing would look like one that found nothing wrong."""
    with pytest.raises(testing.NoSuchScenario, match=id_):
        swept(0, only=id_)


@pytest.mark.full
@pytest.mark.fault("SIGKILL in a child run")
def test_no_real_kill_of_a_family_repeats_or_loses_what_its_members_do(
    record_property: Callable[[str, object], None],
) -> None:
    """At a sample of all points, and at a second one in each resume."""
    report = swept(30)
    assert not report.failures, str(report)
    (row,) = report.rows
    record_property(FIGURES, f"{row.scenarios:,} scenarios")
    assert row.scenarios > 20
    assert (row.duplicates, row.lost, row.questions, row.unfinished) == (0, 0, 0, 0)
