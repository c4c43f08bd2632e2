"""The same torture with no worker but procrastinate's: nothing depends on what the queue does after a death."""

from __future__ import annotations

from collections.abc import Callable

import procrastinate
import pytest

from tests.postgres.clerk import Clerk
from tests.postgres.crowd import Crowd
from tests.postgres.fleet import Fleet
from tests.postgres.judge import judge
from tests.postgres.test_storm import TROUBLES, rage, told
from tests.postgres.witness import witness
from tests.support.figures import FIGURES
from tests.support.postgres import Cluster

PROGRAM = "tests.postgres.procrastinate_worker"


@pytest.mark.full
@pytest.mark.fault("several machines in trouble")
@pytest.mark.fault("a queue loses a job")
def test_three_hundred_runs_end_right_by_procrastinates_workers_alone(
    postgres: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """Killed, frozen, cut off, and with the server gone: each effect once, every run to its end."""
    wrong, forgotten, said = tortured(postgres, 300, 21)
    record_property(FIGURES, said)
    assert wrong == []
    assert forgotten == set()


def tortured(cluster: Cluster, count: int, seed: int) -> tuple[list[str], set[str], str]:
    """A torture on a database of its own: what is wrong, which runs were left to nobody, and the figures."""
    database = cluster.database()
    url = f"{cluster.url(database)}?options=-csearch_path%3Dpublic"  # a role's own schema comes first: refold's, here
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=url))
    with app.open():
        app.schema_manager.apply_schema()
    with witness() as seen, Fleet(cluster, database, seen, program=PROGRAM) as team:
        crowd = Crowd(team.store(), Clerk(seen.url).agent(), count, seed, pace=0.24)
        storm = rage(team, crowd, seed, TROUBLES)
        verdict = judge(team, crowd)
    return verdict.wrong, storm.could_forget, told(storm, crowd, verdict)
