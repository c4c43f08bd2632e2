"""Every command on runs in a database: the same words as on a directory, and no password among them."""

from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
from eventlog.postgres import Postgres
from runner.errors import NoWorkspace
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Output, Refold
from tests.support.postgres import PASSWORD

pytestmark = pytest.mark.full


@pytest.fixture
def runs(database: str) -> str:
    """Where the runs of these tests are."""
    return database


@pytest.fixture
def refold(refold: Refold) -> Refold:
    """The command, whose output is looked through for the password."""

    def invoke(*words: object, **options: Any) -> Output:
        output = refold(*words, **options)
        assert PASSWORD not in output.out + output.err
        return output

    return invoke


PAYING = str(Agent("paying"))


def test_each_command_looks_at_a_run_in_a_database(refold: Refold, runs: str, tmp_path: Path) -> None:
    """Those that read take no lease: another process may hold the run."""
    run = scenes.asking(runs)  # type: ignore[arg-type] # any place of runs will do
    with eventlog.store(runs).open(run):
        refold("show", run).ends(0, out="1.0-approve")
        refold("show", run, "--at", "2", "--json").ends(0)
        refold("audit", run).ends(0)
        refold("report", run, "-o", tmp_path / "page.html").ends(0)
        refold("retrace", run, PAYING).ends(0)
        refold("export", run, PAYING, "--pytest", tmp_path / "test_it.py").ends(0)
        refold("inbox").ends(0, out="refold approve")
        (row,) = refold("ls", "--json").ends(0).json
        assert (row["run"], row["live"]) == (run, True)
        refold("preflight", PAYING, "--json").ends(0, out="pay for 60 s")
        refold("guarantees", PAYING).ends(0, out="after 30 s at most")
        refold("resume", run, PAYING).ends(4, err="its lease")
    verdict = refold("verify", run, "--json").ends(0).json
    assert refold("cat", run).ends(0).out.endswith(f'"sum":"{verdict["sum"]}"}}\n')
    refold("salvage", run, "new").ends(1, err="is not damaged")
    refold("migrate").ends(0, out="schema")
    refold("bench").ends(1, err="is a database")
    assert PASSWORD not in (tmp_path / "page.html").read_text() + (tmp_path / "test_it.py").read_text()


def test_a_run_in_a_database_is_answered_forked_copied_and_pruned(refold: Refold, runs: str, tmp_path: Path) -> None:
    """From its approval to its tombstone."""
    run = scenes.asking(runs)  # type: ignore[arg-type] # any place of runs will do
    refold("approve", run, "1.0-approve", "--by", "ada").ends(0)
    refold("compact", run).ends(0)
    refold("resume", run, PAYING).ends(0, out="Ann has it.")
    refold("copy", run, tmp_path / "kept").ends(0, out="sum")
    refold("verify", run, "--runs", tmp_path / "kept").ends(0)
    refold("approve", run, "1.0-approve", "--runs", tmp_path / "kept").ends(1)
    other = scenes.asking(runs, "other")  # type: ignore[arg-type] # as above
    refold("fork", other, "--at", "2", "--run", "fork").ends(0)
    refold("show", other).ends(0, out="fork")
    refold("stop", "fork", "--by", "ada").ends(0)
    held = eventlog.store(runs).create("held", at=runner.Clock().wall(), events=[])
    refold("prune", "--older-than", "0s").ends(0)
    held.close()
    assert sorted(eventlog.store(runs).names()) == ["held"]
    refold("show", run).ends(1, err="was pruned")
    refold("migrate", "--runs", tmp_path).ends(1, err="is a directory")


@pytest.mark.fault("a workspace that another machine does not have")
def test_a_workspace_is_refused_where_another_machine_may_go_on(runs: str, tmp_path: Path) -> None:
    """It is a directory of one machine, unless every machine has it."""
    with pytest.raises(NoWorkspace, match="shared_workspace"):
        runner.start_sync(agents.plain, "look", runs=runs, run="r", workspace=tmp_path)
    assert eventlog.store(runs).names() == []
    store = Postgres(runs, shared_workspace=True)
    runner.start_sync(agents.plain, "look", runs=store, run="r", workspace=tmp_path)
    store.connections.close()
