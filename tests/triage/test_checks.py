"""Each check fails when what it promises is not so, and then alone."""

import shutil
from pathlib import Path

import pytest

import eventlog
import replay
from replay.events import ModelAsked, RunResumed
from replay.values import Definitions
from runner import triage
from tests.triage.sabotages import BATCH as MORE
from tests.triage.sabotages import ONE, Sabotage
from tests.triage.worlds import BATCH, TASK, Done

pytestmark = pytest.mark.usefixtures("_suites_once")


TASKS = [("finished", 16, 10), ("batch", 54, 14)]
"""A finished run of each task, how many outcomes its checks have, and how many checks do not look at the log."""


@pytest.mark.parametrize(("task", "count", "outside"), TASKS)
def test_an_uninterrupted_run_passes_every_check_and_some_need_no_log(
    request: pytest.FixtureRequest, tmp_path: Path, task: str, count: int, outside: int
) -> None:
    """They must hold where nothing went wrong, and a log can be in order while workspace and tracker are not."""
    done = request.getfixturevalue(task).copy(tmp_path)
    outcomes = done.job.check(done.run)
    assert [outcome.name for outcome in outcomes if not outcome.ok] == []
    assert len(outcomes) == count
    assert all(str(outcome).startswith("ok ") and outcome.sentence.endswith(".") for outcome in outcomes)
    names = [check.name for check in triage.CATALOGUE[done.job.task.name] if check.looks != "log"]
    shutil.rmtree(done.job.runs)
    assert len(names) == outside
    assert done.failed(*names) == {}


def test_every_check_is_sabotaged() -> None:
    """A check without a sabotage might be one that can't fail. Those of both tasks are tried in the first."""
    of_one, of_batch = ({sabotage.check for sabotage in table} for table in (ONE, MORE))
    first, batch = ({check.name for check in triage.CATALOGUE[task]} for task in (TASK, BATCH))
    assert of_one == first
    assert batch - first <= of_batch


@pytest.mark.parametrize("sabotage", ONE, ids=str)
def test_a_sabotage_is_found(finished: Done, tmp_path: Path, sabotage: Sabotage) -> None:
    """For each check a job in which what it promises is not so."""
    done = finished.copy(tmp_path)
    sabotage.do(done)
    (outcome,) = done.job.check(done.run, sabotage.check)
    assert not outcome.ok
    assert str(outcome) == f"FAILED  {sabotage.check}  {outcome.why}"


@pytest.mark.parametrize("sabotage", MORE, ids=str)
def test_a_sabotage_of_the_batch_is_found(batch: Done, tmp_path: Path, sabotage: Sabotage) -> None:
    """By one outcome, that of the group that is wrong."""
    done = batch.copy(tmp_path)
    sabotage.do(done)
    (why,) = done.failed(sabotage.check).values()
    assert "Error: " not in why


@pytest.mark.parametrize(("task", "checks"), [(task, count) for task, count, _ in TASKS])
def test_when_everything_is_gone_every_check_fails_and_none_raises(
    request: pytest.FixtureRequest, tmp_path: Path, task: str, checks: int
) -> None:
    """Whoever prints the checks must get all lines, whatever is missing; no check is content with nothing."""
    done = request.getfixturevalue(task).copy(tmp_path)
    shutil.rmtree(done.job.world.path)
    shutil.rmtree(done.job.runs)
    assert len(done.failed()) == checks


@pytest.mark.fault("secrets in the environment of a model's tests")
def test_the_application_sees_no_more_of_the_environment_than_the_tests(
    finished: Done, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model has patched it, and the checks run it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    done, seen = finished.copy(tmp_path), tmp_path / "seen"
    notes = f"import os, pathlib\npathlib.Path({str(seen)!r}).write_text(' '.join(os.environ))\n"
    done.file("todo/__main__.py").write_text(notes + done.file("todo/__main__.py").read_text())
    assert done.failed("crash-gone") == {}
    assert "PATH" in seen.read_text().split()
    assert "OPENAI_API_KEY" not in seen.read_text()


def test_a_lost_ask_is_accounted_apart_from_the_replies(finished: Done, tmp_path: Path) -> None:
    """A death during an ask costs its bound; the replies' spend and turns stay those of a run that never died."""
    done = finished.copy(tmp_path)

    def die_once(events: list[replay.AnyEvent]) -> list[replay.AnyEvent]:
        if not any(isinstance(e, ModelAsked) for e in events):
            return events
        asked = next(e for e in events if isinstance(e, ModelAsked))
        definitions = Definitions(instructions="", tools={}, parameters="", context="")
        life = RunResumed(host="h", pid=1, counted=True, clock_back=False, definitions=definitions)
        return [*events, life, asked]

    done.rewrite(die_once)
    assert done.failed("lost-asks-accounted", "same-spend", "settled") == {}
    state = replay.load(eventlog.store(done.job.runs).read(done.run).lines)
    assert (state.spent.lost_asks, state.resumes) == (14, 14)
