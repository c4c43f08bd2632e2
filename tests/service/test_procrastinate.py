"""procrastinate carries runs on: jobs are made with them, lost ones are made again, and each effect happens once."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import procrastinate
import psycopg
import pytest

import eventlog
import runner
from runner.procrastinate import Queue
from tests.children.scenes import lead
from tests.service import scenes
from tests.service.test_database import ENDS, PATIENCE, execute
from tests.support import ROOT, stage

pytestmark = pytest.mark.full
APP = "--app=tests.service.procrastinate_app.app"


@contextlib.contextmanager
def working(url: str, effects: Path, queues: str = "refold:agent") -> Iterator[subprocess.Popen[bytes]]:
    """A worker of procrastinate's, which is told to leave at the end."""
    command = [sys.executable, "-m", "procrastinate", APP, "worker", f"--queues={queues}", "--concurrency=10"]
    command += ["--delete-jobs=always", "--shutdown-graceful-timeout=5"]
    env = {**os.environ, "URL": url, "EFFECTS": str(effects), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.terminate()
            worker.wait(60)


def made(url: str, effects: Path) -> Queue:
    """The application's tables, and its queue as a web server would have it: nothing is opened."""
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url))
    with app.open():
        app.schema_manager.apply_schema()
    agents = [scenes.acting(effects), scenes.patient(str(effects))]
    return Queue(procrastinate.App(connector=procrastinate.PsycopgConnector()), agents, runs=url)


def jobs(url: str, agent: str = "%") -> list[tuple[object, ...]]:
    """What waits to carry a run on."""
    query = f"where task_name like 'refold.carry_on:{agent}' and status = 'todo'"
    return execute(url, f"select args, lock, queueing_lock from procrastinate_jobs {query}")  # noqa: S608 (our own words)


@pytest.mark.fault("a transaction that takes its run along")
def test_a_run_and_its_job_are_made_in_the_callers_transaction(database: str, tmp_path: Path) -> None:
    """Both or neither; a job has no lock, which could hold up or refuse another."""
    queue, agent = made(database, tmp_path / "effects"), scenes.acting(tmp_path / "effects")
    with psycopg.connect(database) as connection:
        queue.enqueue(agent, stage.TASK, run="r-1", connection=connection)
        connection.rollback()
        queue.enqueue(agent, stage.TASK, run="r-2", connection=connection)
        assert jobs(database) == []
    assert eventlog.store(database).names() == ["r-2"]
    assert jobs(database) == [({"run": "r-2"}, None, None)]


def test_of_the_looks_at_an_agents_runs_one_waits_at_most(database: str, tmp_path: Path) -> None:
    """However long no worker takes that queue, while another one's makes them every five seconds."""
    made(database, tmp_path / "effects")
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=database))
    Queue(app, [scenes.acting(tmp_path / "effects"), scenes.patient(str(tmp_path))], runs=database)
    with app.open():
        for name in ("agent", "patient"):
            app.tasks[f"refold.look:{name}"].defer(timestamp=0)
            with pytest.raises(procrastinate.exceptions.AlreadyEnqueued):
                app.tasks[f"refold.look:{name}"].defer(timestamp=5)


@pytest.mark.fault("death of a worker")
@pytest.mark.fault("a queue loses a job")
def test_workers_are_killed_and_jobs_are_lost_and_each_effect_happens_once(database: str, tmp_path: Path) -> None:
    """What a dead worker left half done in the queue stays there; the runs go on."""
    effects, names = tmp_path / "effects", [f"r-{number}" for number in range(60)]
    queue, agent = made(database, effects), scenes.acting(effects)
    with psycopg.connect(database) as connection:
        for run in names[:40]:
            queue.enqueue(agent, stage.TASK, run=run, connection=connection)
    for run in names[40:]:
        runner.enqueue(agent, stage.TASK, runs=database, run=run)  # without a job
    execute(database, "delete from procrastinate_jobs where args->>'run' like 'r-1%'")
    with working(database, effects) as first:
        stage.within(PATIENCE, lambda: len(scenes.effects_of(effects)) >= 10)
        first.kill()
        with working(database, effects), working(database, effects):
            stage.within(PATIENCE, lambda: {row[1] for row in execute(database, ENDS)} == {True})
    assert sorted(scenes.effects_of(effects)) == sorted(names)
    assert all(eventlog.store(database).verify(run).ok for run in names)


@pytest.mark.fault("a worker takes what another agent's should")
def test_what_ends_in_the_grace_keeps_its_result_and_a_parked_run_is_left_alone(database: str, tmp_path: Path) -> None:
    """A job says only that somebody should look: a stale one carries no run on that a person holds back."""
    effects = tmp_path / "effects"
    queue, patient = made(database, effects), scenes.patient(str(effects))
    with psycopg.connect(database) as connection:
        queue.enqueue(patient, stage.TASK, run="cut", connection=connection)
        queue.enqueue(scenes.acting(effects), stage.TASK, run="other", connection=connection)
        queue.enqueue(patient, stage.TASK, run="parked", connection=connection)
    runner.park("parked", "ada", runs=database)
    with working(database, effects, "refold:patient") as first:
        stage.within(PATIENCE, lambda: scenes.effects_of(effects) == ["cut-1"])
        first.send_signal(signal.SIGTERM)
        first.wait(60)
    assert eventlog.store(database).holder("cut") is None
    with working(database, effects, "refold:patient"):
        stage.within(PATIENCE, lambda: runner.read_state("cut", database).phase == "done")
        stage.within(PATIENCE, lambda: not [job for job in jobs(database, "patient") if job[0] == {"run": "parked"}])
    assert scenes.effects_of(effects) == ["cut-1", "cut-2"]
    phases = [runner.read_state(run, database).stopped for run in ("other", "parked")]
    assert [stopped and stopped.reason for stopped in phases] == [None, "Parked"]


def test_an_answer_to_a_child_run_has_its_parent_carried_on(database: str, tmp_path: Path) -> None:
    """The child is due, and only its parent's queue has somebody who may carry it on."""
    made(database, tmp_path / "effects")
    runner.enqueue(lead("ask a", "b"), stage.TASK, run="p", runs=database)
    with working(database, tmp_path / "effects", "refold:lead"):
        stage.within(PATIENCE, lambda: runner.read_state("p", database).waiting)
        child = next(run for run in eventlog.store(database).names() if runner.read_state(run, database).questions)
        runner.approve(child, "1.0-approve", "ann", runs=database)
        stage.within(PATIENCE, lambda: runner.read_state("p", database).phase == "done")


def test_a_run_of_an_agent_without_a_queue_is_refused_before_it_is_made(database: str, tmp_path: Path) -> None:
    """No worker of procrastinate's would ever look at it."""
    queue = made(database, tmp_path / "effects")
    refused = pytest.raises(runner.BadAgent, match=r"agent other is none of this queue's, which are agent, patient")
    with psycopg.connect(database) as connection, refused:
        queue.enqueue(stage.agent(["over"], name="other"), stage.TASK, run="r", connection=connection)
    assert eventlog.store(database).names() == []


def test_runs_in_a_directory_are_refused(tmp_path: Path) -> None:
    """No other machine could carry them on."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector())
    with pytest.raises(runner.BadAgent, match="directory"):
        Queue(app, [stage.agent(["over"])], runs=tmp_path)
