"""One process per run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

import eventlog
import runner
import runner.testing
from tests.engine import scenes, scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer

ACT = [runner.testing.tool_calls(("act", {})), "over"]


@pytest.mark.fault("second opener")
def test_a_second_opener_is_refused_at_once_wherever_it_is(runs: Path, forks: ForkServer) -> None:
    """In this thread, in another one, in another process; each is told who holds it."""
    refusals: list[BaseException] = []

    def second() -> None:
        try:
            runner.resume_sync("r", stage.agent(ACT), runs=runs)
        except eventlog.RunLocked as error:
            refusals.append(error)

    @runner.tool
    async def act() -> list[str]:
        try:
            await runner.resume("r", stage.agent(ACT), runs=runs)
        except eventlog.RunLocked as error:
            refusals.append(error)
        await asyncio.to_thread(second)
        with pytest.raises(eventlog.RunLocked):
            runner.fork("r", at=1, runs=runs)
        found: list[str] = await asyncio.to_thread(lambda: forks.run(scenes.resume, runs=runs).value)
        return found

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert [str(os.getpid()) in str(refused) for refused in refusals] == [True, True]
    assert {getattr(refused, "hint", "") for refused in refusals} == {eventlog.RunLocked.HERE}, (
        "nobody ends that process"
    )
    text = stage.results(runs)["1.0"].text
    assert "RunLocked" in text
    assert f"process {os.getpid()}" in text
    assert "very process" not in text


@pytest.mark.fault("many resumers at once")
def test_of_twenty_processes_that_resume_at_once_one_goes_on(runs: Path, forks: ForkServer, tmp_path: Path) -> None:
    """Nineteen are told who holds it, and write nothing."""

    @runner.tool(approval=True)
    def act() -> None:
        """Wait until everybody was told."""

    stage.asked(stage.start(ACT, act, runs=runs))
    runner.approve("r", "1.0-approve", "olga", runs=runs)
    before = len(stage.lines(runs))
    told = tmp_path / "stated"
    told.mkdir()
    crowd = [forks.begin(scenes.one_of_many, runs=runs, told=told, others=19) for _ in range(20)]
    outcomes = [one.end().value for one in crowd]
    assert Counter(kind for kind, _ in outcomes) == {"Finished": 1, "RunLocked": 19}
    (winner,) = (one.pid for one, outcome in zip(crowd, outcomes, strict=True) if outcome[0] == "Finished")
    named = [re.findall(r"process (\d+)", said) for kind, said in outcomes if kind == "RunLocked"]
    assert {int(pid) for (pid,) in filter(None, named)} == {winner}, "one that has not signed yet is not named"
    assert len(stage.lines(runs)) == before + 4
    assert runner.read_state("r", runs).life == 3


@pytest.mark.fault("lock file replaced")
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_lock_file_that_is_gone_stops_the_holder_at_its_next_save(runs: Path, how: str) -> None:
    """Nothing more is written, the call is open, and a resume finds that."""

    @runner.tool
    def act() -> str:
        lock = runs / "r" / "lock"
        if how == "replaced":
            shutil.copy(lock, lock.with_name("copy"))
            lock.with_name("copy").rename(lock)
        else:
            lock.unlink()
        return "done"

    with pytest.raises(eventlog.LockLost):
        stage.start(ACT, act, runs=runs)
    (question,) = stage.asked(runner.resume_sync("r", stage.agent(ACT, act), runs=runs))
    assert question.call == "1.0"
    assert stage.results(runs) == {}


@pytest.mark.fault("lock file replaced")
def test_a_lock_file_that_is_gone_at_the_end_takes_no_answer_away(runs: Path) -> None:
    """All lines are on disk; only the log's end could not be written, and the next opener sees an unclean one."""

    def watch(state: runner.State, _events: object) -> None:
        if state.phase == "done":
            (runs / "r" / "lock").unlink()

    assert stage.finished(stage.start(["over"], runs=runs, watch=watch)) == "over"
    assert stage.finished(runner.resume_sync("r", stage.agent([]), runs=runs)) == "over"


def test_the_lock_is_free_however_a_run_ends(runs: Path, forks: ForkServer) -> None:
    """Finished, paused, stopped, or ended by an error of its caller's."""

    @runner.tool(approval=True)
    def ask() -> str:
        return "x"

    @runner.tool
    def leave() -> str:
        raise SystemExit

    stage.start(["x"], runs=runs, run="finished")
    stage.start([runner.testing.tool_calls(("ask", {}))], ask, runs=runs, run="paused")
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(["x"], runs=runs, run="stopped", limits=runner.Limits(turns=0))
    with pytest.raises(SystemExit):
        stage.start([runner.testing.tool_calls(("leave", {}))], leave, runs=runs, run="left")
    for run in ("finished", "paused", "stopped", "left"):
        assert forks.run(scenes.resume, runs=runs, run=run).value[0] != "RunLocked"


@pytest.mark.fault("holder killed")
def test_a_holder_that_was_killed_holds_nothing(runs: Path, forks: ForkServer) -> None:
    """Its name is still in the file; the kernel's lock decides."""
    assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs).killed
    assert (runs / "r" / "lock").read_bytes().strip()
    assert forks.run(scenes_deaths.dies_in_its_tool, runs=runs, dies=False).value == "over"


@pytest.mark.fault("forked child")
def test_a_child_that_a_tool_forked_releases_and_writes_nothing(runs: Path, forks: ForkServer) -> None:
    """It shares the parent's lock and files, and must leave both alone."""
    assert forks.run(scenes.forks_in_its_tool, runs=runs).value == ["RunLocked", "LogDead", "over"]
    assert runner.read_state("r", runs).phase == "done"
