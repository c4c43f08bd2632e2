"""Killed by SIGKILL around every tool, each job ends as if nothing had happened."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
from replay.events import ReplySaved, ResultRecorded
from runner import testing, triage
from tests.support import stage
from tests.support.forkserver import ForkServer
from tests.triage.worlds import BATCH, TASK, TOOLS, Done, carry_on, finish

pytestmark = pytest.mark.usefixtures("_suites_once")


Die = Callable[..., replay.State]


@pytest.fixture
def die(forks: ForkServer, tmp_path: Path) -> Die:
    """Lets the job die in a process of its own; the state that its log tells afterwards."""

    def dead(**options: Any) -> replay.State:
        died = forks.run(carry_on, runs=tmp_path / "runs", approve="off", **options)
        assert died.killed, died.output
        return runner.read_state(eventlog.store(tmp_path / "runs").runs()[0], tmp_path / "runs")

    return dead


def results(done: Done, tool: str) -> list[str]:
    """How the calls of a tool came to their results."""
    events = done.events()
    called = {c.id for e in events if isinstance(e, ReplySaved) for c in e.reply.calls if c.tool == tool}
    return [e.how for e in events if isinstance(e, ResultRecorded) and e.call in called]


@pytest.mark.parametrize("task", [TASK, pytest.param(BATCH, marks=pytest.mark.full)])
def test_killed_before_and_after_each_tool_every_check_passes(tmp_path: Path, die: Die, task: str) -> None:
    """For each tool once before its body, and on the resume as soon as it has returned, all in one run."""
    runs, tools = tmp_path / "runs", triage.Task(task).tools
    for tool in sorted(tools, key=_first_called(task).index):
        for options in ({"die_before": tool}, {"die_after": tool}):
            state = die(task=task, resumes=100, **options)
            assert state.phase == "tools"
            assert any(call.call.tool == tool and call.in_doubt for call in state.calls)
    done = finish(runs, task, limits=runner.Limits(resumes=100))
    assert done.failed() == {}
    assert replay.load(eventlog.store(runs).read(done.run).lines).life == 1 + 2 * len(tools)
    assert {tool: results(done, tool)[0] for tool in tools} == {
        tool: "found" if tool == "code_patch" else "ran" for tool in tools
    }


def _first_called(task: str) -> list[str]:
    """The tools in the order in which the recorded model first calls them."""
    replies = testing.RecordedModel(triage.Task(task).recording).replies
    return list(dict.fromkeys(call.tool for reply in replies.values() for call in reply.calls))


def test_the_tools_are_known_here() -> None:
    """A task that loses one would be killed around fewer."""
    assert triage.Task(TASK).tools == TOOLS
    assert triage.Task(BATCH).tools == (*TOOLS, "issue_comment")


def test_killed_after_the_patch_the_second_rung_finds_it(tmp_path: Path, die: Die) -> None:
    """It dies at turn 8 with the patch's marker in the log, and the workspace says that it happened."""
    runs = tmp_path / "runs"
    state = die(die_after="code_patch")
    (call,) = state.calls
    assert (state.phase, state.turns, state.in_doubt) == ("tools", 8, ("8.0",))
    assert (call.call.tool, call.attempts[0].key) == ("code_patch", runner.key(state.uid, "8.0"))
    done = finish(runs)
    assert results(done, "code_patch") == ["found"]
    assert done.failed("patched-once", "same-spend", "settled") == {}


def test_killed_after_the_filing_with_a_tracker_that_ignores_keys(tmp_path: Path, die: Die) -> None:
    """Nothing is resent to a service that forgets: it is asked, and it has the issue."""
    runs = tmp_path / "runs"
    job = triage.Job.of(TASK, runs, approve="off")
    triage.set_tracker_faults(job.world.path, triage.TrackerFaults(ignore_keys=True))
    die(die_after="issue_file")
    result = asyncio.run(job.run(clock=stage.Ticking(runner.Clock().wall())))
    done = Done(job, result.run)
    assert results(done, "issue_file") == ["found"]
    assert done.failed("one-issue", "same-key", "settled", "answer-names-issue") == {}


def test_when_neither_keys_nor_the_lookup_work_a_person_settles_it(tmp_path: Path, die: Die) -> None:
    """The third rung, and the only place where anyone is asked with approvals off."""
    runs = tmp_path / "runs"
    job = triage.Job.of(TASK, runs, approve="off")
    triage.set_tracker_faults(job.world.path, triage.TrackerFaults(ignore_keys=True, lookup_down=True))
    die(die_after="issue_file")
    paused = asyncio.run(job.run(clock=stage.Ticking(runner.Clock().wall())))
    assert isinstance(paused, runner.Paused)
    (question,) = paused.questions
    assert (question.kind, question.tool) == ("settle", "issue_file")
    runner.settle(paused.run, question.id, "ada", "done", found='{"issue": 1}', runs=runs)
    result = asyncio.run(job.run())
    assert Done(job, result.run).failed("one-issue", "same-key", "settled", "answer-names-issue") == {}
