"""One script in a directory and in a database: the same bytes, but for what names the run, the machine, the time."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

import eventlog
import runner
from eventlog.postgres import Postgres
from tests.support import stage

pytestmark = pytest.mark.full
OWN = re.compile(rb'("(?:nonce|sum|prev|uid|key|post|host|pid)":)(?:"[^"]*"|\d+)|"storage":\{[^}]*\}')


@runner.tool(effect="keyed", key_ttl=timedelta(hours=1), approval=True)
def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


@runner.tool(effect="reads")
def look(n: int) -> str:
    """Look."""
    return "x" * n


def told(runs: str | Path | eventlog.Store) -> bytes:
    """Play the script, with a question in the middle, and give the log's bytes without what is its own."""
    script = [runner.testing.tool_calls(("look", {"n": 900})), runner.testing.tool_calls(("pay", {"cents": 5})), "done"]
    agent, clock = stage.agent(script, pay, look), stage.Ticking()
    assert isinstance(runner.start_sync(agent, stage.TASK, runs=runs, run="r", clock=clock), runner.Paused)
    runner.approve("r", "2.0-approve", "ada", runs=runs)
    assert isinstance(runner.resume_sync("r", agent, runs=runs, clock=clock), runner.Finished)
    store = eventlog.store(runs)
    data = b"".join(store.raw(store.read("r")))
    return OWN.sub(rb'\1""', re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z", b"TIME", data))


def test_a_run_in_a_database_has_the_bytes_of_one_in_a_directory(database_runs: Postgres, tmp_path: Path) -> None:
    """So whatever reads the one reads the other."""
    first, second = told(tmp_path / "runs"), told(database_runs)
    assert second.count(b"\n") > 8
    assert second.decode() == first.decode()
