"""`refold prune`: what ended long ago goes, what may go on or is needed stays, and no request is carried out twice."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import eventlog
import runner
import runner.testing
from replay.values import ParentCall
from tests.cli import agents, scenes
from tests.cli.conftest import Refold
from tests.cli.test_ls import Fixed
from tests.support import stage


def _begin(runs: Path, run: str, days: float) -> None:
    """A run that ended so many days ago."""
    clock = Fixed(datetime.now(UTC) - timedelta(days=days))
    runner.start_sync(agents.plain, "look at one", runs=runs, run=run, clock=clock)


def test_only_what_ended_long_enough_ago_is_removed(refold: Refold, runs: Path) -> None:
    """A run that waits, or stopped where it can go on, is not at its end, however old it is."""
    _begin(runs, "old", 9)
    _begin(runs, "young", 6)
    scenes.asking(runs)
    scenes.stopped(runs)
    scenes.damage(runs, scenes.finished(runs, "bad-run"))
    refold("stop", scenes.asking(runs, "ended")).ends(0)
    refold("prune", "--older-than", "1w", "--dry-run").ends(0, "would prune old\n")
    refold("prune", "--older-than", "1w").ends(0, "pruned old\n")
    refold("prune", "--older-than", "0s").ends(0, "pruned ended\npruned young\n")
    assert sorted(row["run"] for row in refold("ls", "--json").json) == ["asking-run", "bad-run", "stopped-run"]
    refold("prune").ends(2, err="--older-than")


def test_runs_whose_statuses_call_each_other_parents_are_left_alone(refold: Refold, runs: Path) -> None:
    """Such a status is written by no runner, and following it would never end."""
    for run, parent in (("one", "two"), ("two", "one"), ("three", "three")):
        _begin(runs, run, 9)
        (info,) = runner.list_runs(runs, [run])
        with eventlog.store(runs).open(run) as log:
            assert info.status is not None
            log.status = msgspec.structs.replace(info.status, parent_call=ParentCall(run=parent, uid="u", call="1.0"))
    refold("prune", "--older-than", "1w").ends(0, "")


@pytest.mark.fault("a request that is delivered again after its run was pruned")
def test_the_same_request_again_pays_nothing_and_is_told_what_is_known(refold: Refold, runs: Path) -> None:
    """A webhook that is delivered again names the same run, by whichever call."""
    paid = []

    @runner.tool(effect="idempotent")
    def pay() -> str:
        paid.append(1)
        return "paid"

    agent = runner.Agent(
        name="payer", model=runner.testing.ScriptedModel([runner.testing.tool_calls(("pay", {})), "over"]), tools=[pay]
    )
    state = runner.run_sync(agent, "pay", run="webhook-7", runs=runs).state
    total = eventlog.store(runs).read("webhook-7").lines[-1].sum
    refold("prune", "--older-than", "0s").ends(0, "pruned webhook-7\n")
    digest = hashlib.sha256(b"over").hexdigest()
    for again in (
        lambda: runner.run_sync(agent, "pay", run="webhook-7", runs=runs),
        lambda: runner.start_sync(agent, "pay", run="webhook-7", runs=runs),
        lambda: runner.enqueue(agent, "pay", run="webhook-7", runs=runs),
        lambda: runner.resume_sync("webhook-7", agent, runs=runs),
        lambda: runner.start_sync(agent, "pay", after="webhook-7", runs=runs),
    ):
        with pytest.raises(eventlog.RunPruned) as gone:
            again()
        assert (gone.value.at, gone.value.sum) == (state.at, total)
        assert gone.value.words == {"uid": state.uid, "answer": digest}
    assert paid == [1]
    refold("show", "webhook-7").ends(1, err=["was pruned", total, state.uid, digest])
    refold("prune", "--forget", "1h").ends(0, "")
    refold("prune", "--forget", "0s", "--dry-run").ends(0, "would forget webhook-7\n")
    refold("prune", "--forget", "0s").ends(0, "forgot webhook-7\n")
    runner.run_sync(agent, "pay", run="webhook-7", runs=runs)
    assert paid == [1, 1]


def test_what_an_unfinished_fork_comes_from_stays_and_goes_with_it(refold: Refold, runs: Path) -> None:
    """Back to the first of the family; and no fork is made where a pruned one may have acted."""
    scenes.finished(runs)
    runner.fork("done-run", at=2, runs=runs, new="second")
    runner.resume_sync("second", agents.plain, runs=runs)
    runner.fork("second", at=4, runs=runs, new="third")
    scenes.finished(runs, "alone")
    refold("prune", "--older-than", "0s").ends(0, "pruned alone\n")
    runner.resume_sync("third", agents.plain, runs=runs)
    dict(eventlog.store(runs).prune({"second": {}}))
    with pytest.raises(runner.errors.NotForkable, match=r"second, a fork of the same history.*pruned"):
        runner.fork("done-run", at=2, runs=runs, new="fourth")
    refold("prune", "--older-than", "0s").ends(0, "pruned done-run\npruned third\n")


def test_a_run_that_stays_is_named_with_the_reason(refold: Refold, runs: Path) -> None:
    """The others go all the same."""
    for run in ("a", "b"):
        scenes.finished(runs, run)
    (runs / "a" / "notes.txt").write_text("mine")
    refold("prune", "--older-than", "0s").ends(1, "pruned b\n", err="not ours: notes.txt")


def test_a_damaged_run_that_ended_stays_and_is_told_by_the_exit_status(refold: Refold, runs: Path) -> None:
    """A clock that prunes each night knows it from a disk that fails; where the log was moved away, all is well."""
    for run in ("a", "b", "c"):
        scenes.finished(runs, run)
    status = (runs / "a" / "status").read_bytes()
    scenes.damage(runs, "a")
    (runs / "a" / "status").write_bytes(status)
    refold("prune", "--older-than", "0s").ends(5, "pruned b\npruned c\n", err="refold salvage")
    (runs / "a").rename(runs.parent / "kept")
    refold("prune", "--older-than", "0s").ends(0, "")


def test_what_another_pruning_took_in_the_meantime_is_no_failure(
    refold: Refold, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them may overlap, each begun by a clock."""
    for run in ("a", "b"):
        scenes.finished(runs, run)
    prune = eventlog.Directory.prune

    def second(store: eventlog.Directory, ended: Mapping[str, dict[str, str]]) -> object:
        assert list(prune(store, {"a": ended["a"]})) == [("a", None)]
        return prune(store, ended)

    monkeypatch.setattr(eventlog.Directory, "prune", second)
    refold("prune", "--older-than", "0s").ends(0, "pruned b\n")


@pytest.mark.full
def test_the_command_prunes_a_database(refold: Refold, database: str) -> None:
    """As it does a directory."""
    agent = stage.agent(["over"])
    runner.run_sync(agent, stage.TASK, run="done", runs=database)
    runner.enqueue(agent, stage.TASK, run="due", runs=database)
    refold("prune", "--older-than", "0s", "--runs", database).ends(0, "pruned done\n")
    with pytest.raises(eventlog.RunPruned, match="answer"):
        runner.run_sync(agent, stage.TASK, run="done", runs=database)
    refold("prune", "--forget", "0s", "--runs", database).ends(0, "forgot done\n")
