"""Each of the sixteen checks fails when the world, or the log, is what it promises not to be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import replay
from runner import triage
from tests.triage.sabotages import SABOTAGES
from tests.triage.worlds import TASK, Done

pytestmark = pytest.mark.usefixtures("_suites_once")


def test_an_uninterrupted_run_passes_all_sixteen(finished: Done) -> None:
    """The checks must hold where nothing went wrong, or they prove nothing elsewhere."""
    outcomes = finished.job.check(finished.run)
    assert [outcome.name for outcome in outcomes if not outcome.ok] == []
    assert len(outcomes) == 16
    assert all(str(outcome).startswith("ok ") and outcome.sentence.endswith(".") for outcome in outcomes)


def test_ten_checks_look_at_the_world_alone(finished: Done, tmp_path: Path) -> None:
    """A log can be in order while the world is not: the checks of the world must not need it."""
    names = [check.name for check in triage.CATALOGUE[TASK] if check.looks == "world"]
    done = finished.copy(tmp_path)
    shutil.rmtree(done.job.runs)
    assert len(names) == 10
    assert done.failed(*names) == {}


def test_every_check_is_sabotaged() -> None:
    """A check without a sabotage might be one that cannot fail."""
    assert {name for name, _ in SABOTAGES} == {check.name for check in triage.CATALOGUE[TASK]}


@pytest.mark.parametrize(("name", "sabotage"), SABOTAGES, ids=lambda part: getattr(part, "__name__", part))
def test_a_sabotage_is_found(finished: Done, tmp_path: Path, name: str, sabotage: Callable[[Done], None]) -> None:
    """For each check a world in which exactly what it promises is not so."""
    done = finished.copy(tmp_path)
    sabotage(done)
    outcome = next(outcome for outcome in done.job.check(done.run, name))
    assert not outcome.ok
    assert str(outcome) == f"FAILED  {name}  {outcome.why}"


def test_a_world_that_is_gone_fails_every_check_and_raises_nothing(finished: Done, tmp_path: Path) -> None:
    """Whoever prints the checks must get sixteen lines, whatever is missing."""
    done = finished.copy(tmp_path)
    shutil.rmtree(done.job.world.path)
    shutil.rmtree(done.job.runs)
    assert len(done.failed()) == 16


def test_a_lost_ask_is_accounted_apart_from_the_replies(finished: Done, tmp_path: Path) -> None:
    """A death during an ask costs its bound; the replies' spend and turns stay those of a run that never died."""
    done = finished.copy(tmp_path)

    def die_once(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        if not any(isinstance(e, replay.ModelAsked) for e in events):
            return events
        asked = next(e for e in events if isinstance(e, replay.ModelAsked))
        definitions = replay.Definitions(instructions="", tools={}, parameters="", context="")
        life = replay.RunResumed(host="h", pid=1, counted=True, clock_back=False, definitions=definitions)
        return [*events, life, asked]

    done.rewrite(die_once)
    assert done.failed("lost-asks-accounted", "same-spend", "settled") == {}
    state = replay.load(eventlog.read(done.job.runs, done.run).lines)
    assert (state.spent.lost_asks, state.resumes) == (14, 14)
