"""The same torture with no worker but procrastinate's: nothing depends on what the queue does after a death."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import procrastinate
import pytest

from tests.postgres.fleet import begun
from tests.postgres.test_storm import tortured
from tests.support.figures import FIGURES
from tests.support.postgres import Cluster

PROGRAM = "tests.postgres.procrastinate_worker"
LOSES = """
import asyncio, contextlib
from tests.postgres import procrastinate_worker as worker

async def loses_one(*_):
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(600)
    await asyncio.sleep(600)

worker._work, worker.LOST = loses_one, 0.1
asyncio.run(worker.main("postgresql://127.0.0.1/nothing", "http://127.0.0.1:9", 2.0, 0.0))
"""


@pytest.mark.full
@pytest.mark.fault("several machines in trouble")
@pytest.mark.fault("a queue loses a job")
def test_three_hundred_runs_end_right_by_procrastinates_workers_alone(
    postgres: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """Killed, frozen, cut off, and with the server gone: each effect once, every run to its end."""
    name = postgres.database()
    url = f"{postgres.url(name)}?options=-csearch_path%3Dpublic"  # a role's own schema comes first: refold's, here
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url))
    with app.open():
        app.schema_manager.apply_schema()
    wrong, said = tortured(postgres, 300, 21, database=name, program=PROGRAM)
    record_property(FIGURES, said)
    assert wrong == []


@pytest.mark.full
@pytest.mark.fault("server hangs")
def test_a_worker_that_is_told_to_end_while_its_server_says_nothing_ends() -> None:
    """Who opens connections for its pool takes a cancellation for an error, and goes on if the pool is not closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://nobody@127.0.0.1:{server.getsockname()[1]}/nothing"
        worker = begun("nobody", "-m", PROGRAM, url, "http://127.0.0.1:9", "2.0", "0.0", "-")
        with server.accept()[0]:
            worker.end(signal.SIGTERM, 60.0)


@pytest.mark.full
@pytest.mark.fault("a cancellation that is lost")
def test_a_worker_that_lost_the_cancellation_of_its_work_ends() -> None:
    """As one does whose connections are ready in the same turn of the loop: twice in two thousand turns."""
    begun("nobody", "-c", LOSES).end(signal.SIGTERM, 60.0)
