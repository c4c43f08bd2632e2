"""A worker on a database: idle it costs next to nothing, and what is due is carried on exactly once."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import eventlog
import runner
from eventlog.postgres import Postgres, _connections, _log
from tests.service import scenes
from tests.support import stage
from tests.support.figures import FIGURES
from tests.support.forkserver import Child, ForkServer

pytestmark = pytest.mark.full
PATIENCE = 300.0
DUE = int(os.environ.get("DUE", "1000"))
"""Runs that become due at once."""
ENDS = "select life, closed, owner, wake from refold.run group by 1, 2, 3, 4"


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    """Run one statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description is not None else []


@contextlib.contextmanager
def working(
    forks: ForkServer, url: str, effects: Path, which: str = "agent", many: int = 2, lease: float = 6.0
) -> Iterator[list[Child]]:
    """Worker processes; those that live at the end leave."""
    given = {"runs": url, "effects": effects, "which": which, "lease": lease}
    workers = [forks.begin(scenes.serve, **given) for _ in range(many)]
    try:
        stage.within(PATIENCE, lambda: len(scenes.effects_of(f"{effects}-up")) >= many)
        yield workers
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGTERM)
        assert [ended.value for worker in workers if not (ended := worker.end()).killed] in ([], [[]], [[], []])


def test_a_worker_beside_ten_thousand_waiting_runs_is_idle(
    database: str, forks: ForkServer, record_property: Callable[[str, object], None]
) -> None:
    """It asks for what is due, and reads no list."""
    runner.enqueue(scenes.shop(""), stage.TASK, runs=database, run="w-0")
    rest = "token, owner, since, expires, seq, sum, life, at, bytes, began, parent, status, agent, closed"
    execute(database, "update refold.run set wake = now() + interval '1 day'")
    copies = f"select 'w-' || n, wake, {rest} from refold.run, generate_series(1, 9999) n"  # noqa: S608 (our own words)
    execute(database, f"insert into refold.run (run, wake, {rest}) {copies}")
    execute(database, "analyze refold.run")
    share, megabytes = forks.run(scenes.idle, runs=database, seconds=35).value
    record_property(FIGURES, f"10,000 waiting runs: {share:.2%} of a core, {megabytes:.1f} MB")
    assert share <= 0.01


def test_what_becomes_due_all_at_once_is_carried_on_exactly_once(
    database: str, forks: ForkServer, tmp_path: Path
) -> None:
    """Two workers share it, and neither opens what the other has."""
    effects, names = tmp_path / "effects", [f"r-{number}" for number in range(DUE)]
    agent = scenes.acting(effects)
    for run in names:
        runner.enqueue(agent, stage.TASK, runs=database, run=run)
    execute(database, "update refold.run set wake = now() + interval '1 day'")
    with working(forks, database, effects, lease=60.0):  # no run is lost to a slow machine
        execute(database, "update refold.run set wake = now()")
        stage.within(PATIENCE + DUE, lambda: execute(database, ENDS) == [(2, True, None, None)])
    assert sorted(scenes.effects_of(effects)) == sorted(names)


@pytest.mark.fault("death of a worker")
def test_the_runs_of_a_worker_that_is_killed_go_on_in_the_other_when_its_leases_end(
    database: str, forks: ForkServer, tmp_path: Path
) -> None:
    """Nobody is seen to die, but a lease that ran out is found."""
    effects = tmp_path / "effects"
    agent = scenes.patient(str(effects))
    for number in range(10):
        runner.enqueue(agent, stage.TASK, runs=database, run=f"r-{number}")
    with working(forks, database, effects, "patient", many=1) as first:
        stage.within(PATIENCE, lambda: len({effect[:3] for effect in scenes.effects_of(effects)}) == 10)
        os.kill(first[0].pid, signal.SIGKILL)
    (tmp_path / "effects-up").unlink()
    with working(forks, database, effects, "patient"):
        stage.within(PATIENCE, lambda: all(runner.read_state(f"r-{n}", database).phase == "done" for n in range(10)))
    attempts = scenes.effects_of(effects)  # more than two of a run whose lease ran out because the machine was slow
    assert {f"r-{number}-{attempt}" for number in range(10) for attempt in (1, 2)} <= set(attempts)
    assert len(set(attempts)) == len(attempts)
    assert {tuple(ends[1:]) for ends in execute(database, ENDS)} == {(True, None, None)}


@pytest.mark.fault("a transaction that takes its run along")
def test_a_run_that_is_made_in_a_callers_transaction_exists_once_that_commits(database: str) -> None:
    """With the caller's own rows, or not at all; nobody sees it, and nothing holds it, before."""
    agent, store = stage.agent(["over"]), eventlog.store(database)
    with psycopg.connect(database) as connection:
        runner.enqueue(agent, stage.TASK, runs=database, run="r-1", connection=connection)
        with pytest.raises(eventlog.NoSuchRun):
            store.read("r-1")
        connection.rollback()
        runner.enqueue(agent, stage.TASK, runs=database, run="r-2", connection=connection)
        connection.execute("create table invoice (id int)")
    assert (store.names(), execute(database, "select * from invoice")) == (["r-2"], [])
    assert stage.finished(runner.run_sync(agent, stage.TASK, run="r-2", runs=database)) == "over"
    with pytest.raises(runner.BadAgent, match="no transaction"):
        runner.enqueue(agent, stage.TASK, runs="runs", connection=connection)


@pytest.mark.fault("server hangs")
def test_the_event_loop_waits_for_no_server(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else it serves would stand still with a server that hangs: it does no save, and in a worker nothing else."""
    here, found = threading.current_thread(), list[str]()

    def noted(owner: type, name: str) -> None:
        act = getattr(owner, name)

        def seen(*given: Any, **more: Any) -> Any:
            if threading.current_thread() is here:
                found.append(name)
            return act(*given, **more)

        monkeypatch.setattr(owner, name, seen)

    noted(_log.Row, "_save")
    assert stage.finished(runner.run_sync(stage.agent(["over"]), stage.TASK, run="r", runs=database)) == "over"
    noted(_connections.Connections, "_taken")
    noted(_connections.Connections, "fresh")

    async def main() -> list[str]:
        dead = Postgres("postgresql://127.0.0.1:1/dead")
        async with runner.Worker([stage.agent(["over"])], runs=dead) as worker:
            async with asyncio.timeout(PATIENCE):
                while not worker.problems:  # noqa: ASYNC110 (a look has failed, and a tick has gone before it)
                    await asyncio.sleep(0.01)
        agent = stage.agent(["over"])
        async with runner.Worker([agent], runs=database) as worker:
            return [stage.finished(await (await worker.start(agent, stage.TASK, run="s")).outcome())]

    assert asyncio.run(main()) == ["over"]
    assert found == []
