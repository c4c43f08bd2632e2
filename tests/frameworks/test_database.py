"""Programs with a loop of their own in a database: one process is killed, another carries the run on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import runner
from eventlog.postgres import Postgres
from tests.frameworks.kills import EFFECTS, Files
from tests.frameworks.orders import ANSWER, ORDERS, TURNS
from tests.support import ROOT


@pytest.mark.full
@pytest.mark.fault("SIGKILL in a program whose run is in a database")
@pytest.mark.parametrize("kind", ORDERS)
def test_another_process_goes_on_when_the_lease_of_one_that_was_killed_ends(
    kind: str, database: str, database_runs: Postgres, tmp_path: Path
) -> None:
    """It died after a mail was sent and before that was saved: the post is asked, and everything happened once."""
    command = [sys.executable, "-m", "tests.frameworks.dying", kind, database, str(tmp_path)]
    died = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    outside = Files(tmp_path)
    asked = outside.noted("ask")
    program = ORDERS[kind](outside)
    with pytest.raises(runner.RunLocked):
        runner.run_sync(program, "Order.", run="r", runs=database_runs)
    database_runs.connections.rows("update refold.run set expires = now() - interval '1 second'")
    assert runner.run_sync(program, "Order.", run="r", runs=database_runs).finished().answer == ANSWER
    assert {what: len(outside.noted(what)) for what in EFFECTS} == dict.fromkeys(EFFECTS, 1)
    if kind != "plain":
        assert (asked, outside.noted("ask")) == (["0", "1", "2"], [str(turn) for turn in range(len(TURNS) + 1)])
