"""The job as a user runs it: started, asked, held, carried on, and started anew."""

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import AttemptMarked, ResultRecorded
from replay.messages import Reply
from runner import triage
from runner.triage import _job
from runner.triage._tracker_store import Issue, stored
from tests.support import ROOT, stage
from tests.support.forkserver import ForkServer
from tests.triage import recrash
from tests.triage.worlds import BATCH, TASK, TOOLS, Done, carry_on, tracker_pid

pytestmark = pytest.mark.usefixtures("_suites_once")


def replies() -> list[Reply]:
    """What the recorded model says, turn by turn."""
    return list(runner.testing.RecordedModel(triage.Task(TASK).recording).replies.values())


def _stopped(job: triage.Job, *, new: bool) -> str:
    """The run that its limit stopped."""
    with pytest.raises(runner.errors.TurnLimit) as caught:
        asyncio.run(job.run(new=new))
    return caught.value.run


@pytest.mark.parametrize("task", [TASK, BATCH])
def test_the_recording_is_up_to_date(request: pytest.FixtureRequest, shared: Path, task: str) -> None:
    """Written afresh with today's instructions and tools it is the same file, byte by byte."""
    request.getfixturevalue("finished" if task == TASK else "batch")
    fresh = (shared / task / "recording.jsonl").read_bytes()
    assert fresh == triage.Task(task).recording.read_bytes(), "run python tests/triage/rerecord.py"


@pytest.mark.parametrize("task", [TASK, BATCH])
def test_the_tracebacks_are_the_applications_own(task: str) -> None:
    """Crashed again today, the same files, lines and functions appear; only an interpreter's words vary."""

    def places(traceback: str) -> list[str]:
        lines = [line.strip() for line in traceback.split("\n")]
        return [*(line for line in lines if line.startswith('File "todo/')), lines[-2].partition(":")[0]]

    shipped = {crash.id: places(crash.traceback) for crash in triage.Task(task).crashes()}
    reports = recrash.REPORTS[task]
    assert shipped == {report.id: places(recrash.crash(task, report)["traceback"]) for report in reports}
    assert not any(str(Path.home()) in crash.traceback for crash in triage.Task(task).crashes())


def test_the_recorded_conversation_is_worth_killing() -> None:
    """At least twelve turns, every tool, reads side by side, and the patch first and alone at turn 8."""
    called = [[call.tool for call in reply.calls] for reply in replies()]
    assert len(called) >= 12
    assert {tool for turn in called for tool in turn} == set(TOOLS)
    assert [turn for turn, tools in enumerate(called, 1) if "code_patch" in tools] == [8]
    assert called[7] == ["code_patch"]
    assert any(len(tools) >= 3 for tools in called)


@pytest.mark.parametrize("task", [TASK, BATCH])
def test_the_suite_is_green_before_anyone_begins(tmp_path: Path, task: str) -> None:
    """The bugs are real and no test covers them: otherwise there would be nothing to triage."""
    job = triage.Job.of(task, tmp_path / "runs")
    with job.world.held():
        job.world.lay(job.task)
    assert not {"suite-green", "no-leftovers"} & Done(job, "none").failed("suite-green", "no-leftovers").keys()


def test_the_task_of_a_run_is_the_tasks_name(finished: Done, batch: Done) -> None:
    """A listing of runs is searched by it; what is to be done stands in the instructions."""
    for done, named in ((finished, TASK), (batch, BATCH)):
        assert runner.read_state(done.run, done.job.runs).task == named
        assert "crash" in done.job.agent().instructions_for(None)


def test_a_finished_job_gives_its_answer_and_asks_no_model(finished: Done) -> None:
    """A second command after the work is done costs nothing and changes nothing."""
    log = (finished.job.runs / finished.run / "seg-000001.jsonl").read_bytes()
    result = asyncio.run(finished.job.run(model=runner.testing.ScriptedModel([])))
    assert isinstance(result, runner.Finished)
    assert "#1" in result.answer
    assert (finished.job.runs / finished.run / "seg-000001.jsonl").read_bytes() == log


def test_reads_of_one_reply_are_saved_together(finished: Done) -> None:
    """A wave is one line of results, so its flushes do not grow with its calls."""
    lines = eventlog.store(finished.job.runs).read(finished.run).lines
    events = [[replay.decode(raw) for raw in line.events] for line in lines]
    results = [[e.call for e in line if isinstance(e, ResultRecorded)] for line in events]
    assert ["3.0", "3.1", "3.2", "3.3"] in results


def test_an_approval_is_asked_and_answered_from_elsewhere(tmp_path: Path) -> None:
    """Without a person at hand the run parks; the issue is filed only after the yes, and no resume is counted."""
    job = triage.Job.of(TASK, tmp_path / "runs")
    paused = asyncio.run(job.run())
    assert isinstance(paused, runner.Paused)
    (question,) = paused.questions
    assert (question.tool, stored(job.world.tracker, Issue)) == ("issue_file", [])
    assert isinstance(asyncio.run(job.run()), runner.Paused)
    runner.approve(paused.run, question.id, "ada", runs=job.runs)
    result = asyncio.run(job.run())
    assert isinstance(result, runner.Finished)
    assert result.state.resumes == 0
    assert Done(job, result.run).failed("one-issue", "same-key", "same-spend", "settled") == {}


def test_a_tracker_that_is_killed_at_every_filing_files_one_issue(tmp_path: Path) -> None:
    """The agent lives, the service dies: it is started again, and a repeat under the same key is harmless."""
    job = triage.Job.of(TASK, tmp_path / "runs", approve="off")
    killed: list[int] = []

    def watch(_: replay.State, events: Sequence[replay.Event]) -> None:
        if any(isinstance(event, AttemptMarked) for event in events):
            pid = tracker_pid(job.world.path)
            if pid is not None and pid not in killed:
                killed.append(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    result = asyncio.run(job.run(watch=watch, clock=stage.Ticking()))
    assert len(killed) >= 3
    assert Done(job, result.run).failed("one-issue", "same-key", "same-spend", "settled", "answer-names-issue") == {}


def test_a_second_process_is_told_who_works_here(tmp_path: Path, forks: ForkServer) -> None:
    """Two agents in one workspace would undo each other's patches; the first one's process is named."""
    job = triage.Job.of(TASK, tmp_path / "runs")
    with job.world.held():
        second = forks.run(carry_on, runs=job.runs)
    assert f"WorldHeld: the world {job.world.path} is held by process {os.getpid()}" in second.output
    assert eventlog.store(job.runs).runs() == []


def test_a_foreign_edit_of_a_written_file_stops_the_run_until_somebody_vouches(tmp_path: Path) -> None:
    """Whatever the model believes about that file is no longer so; a file it never wrote is nobody's concern."""
    job = triage.Job.of(TASK, tmp_path / "runs", limits=runner.Limits(turns=6))
    run, written = _stopped(job, new=False), job.task.expected.fixes[0].test
    for path in ("README.md", written):
        (job.world.workspace / path).write_text("edited")
    job = dataclasses.replace(job, limits=runner.Limits(turns=7))
    with pytest.raises(runner.errors.WorkspaceChanged) as caught:
        asyncio.run(job.run())
    assert written in str(caught.value)
    assert "README" not in str(caught.value)
    with pytest.raises(runner.errors.TurnLimit):
        asyncio.run(job.run(accept_workspace="ada"))
    assert replay.load(eventlog.store(job.runs).read(run).lines).turns == 7


def test_the_turn_limit_holds_over_lives_and_can_be_raised(tmp_path: Path) -> None:
    """A limit is of the run, not of the process."""
    job = triage.Job.of(TASK, tmp_path / "runs", limits=runner.Limits(turns=3))
    run = _stopped(job, new=False)
    assert _stopped(job, new=False) == run
    assert _stopped(dataclasses.replace(job, limits=runner.Limits(turns=4)), new=False) == run
    assert replay.load(eventlog.store(job.runs).read(run).lines).turns == 4


def test_a_new_run_gets_a_new_world_and_keeps_the_old_one(tmp_path: Path) -> None:
    """Its model would meet a patched workspace otherwise, and file an issue beside the earlier run's."""
    job = triage.Job.of(TASK, tmp_path / "runs", limits=runner.Limits(turns=8))
    first, second = (_stopped(job, new=new) for new in (True, True))
    assert first != second
    assert job.newest() == second
    for world in (job.world, triage.World(job.world.path.with_name(f"{TASK}.1"))):
        assert Done(dataclasses.replace(job, world=world), second).failed("patched-once", "no-leftovers") == {}


def test_without_new_a_used_world_is_refused(tmp_path: Path, finished: Done) -> None:
    """The log is gone and the world is not: carrying on from nowhere would repeat what was done there."""
    done = finished.copy(tmp_path)
    job = triage.Job.of(TASK, tmp_path / "other-runs", done.job.world.path)
    with pytest.raises(triage.WrongWorld, match="another run has worked in it") as caught:
        asyncio.run(job.run())
    assert "--new" in caught.value.hint
    assert eventlog.store(job.runs).runs() == []


def test_a_run_is_not_carried_on_in_another_world(finished: Done, tmp_path: Path) -> None:
    """Its files are there and its issues would be here."""
    job = triage.Job.of(TASK, finished.job.runs, tmp_path / "elsewhere")
    with pytest.raises(triage.WrongWorld, match=f"run {finished.run} works in"):
        asyncio.run(job.run())


def test_runs_of_other_agents_are_not_taken_for_ours(tmp_path: Path) -> None:
    """A directory of runs may hold anybody's."""
    agent = runner.Agent(model=runner.testing.ScriptedModel(["done"]), name="m1-done")
    asyncio.run(runner.start(agent, "t", runs=tmp_path))
    asyncio.run(runner.start(agent, "t", runs=tmp_path, run=f"{TASK}-mine"))
    assert triage.Job.of(TASK, tmp_path).newest() is None


def test_an_unknown_task_and_an_unknown_tool_are_named_with_those_there_are(tmp_path: Path) -> None:
    """Before anything is made on disk."""
    with pytest.raises(triage.NoSuchTask, match="no task 'm2'") as caught:
        triage.Job.of("m2", tmp_path / "runs")
    assert TASK in caught.value.hint
    with pytest.raises(triage.NoSuchTool, match="no tool 'code_patsh'") as other:
        asyncio.run(triage.Job.of(TASK, tmp_path / "runs", die_after="code_patsh").run())
    assert "code_patch" in other.value.hint
    assert eventlog.store(tmp_path / "runs").runs() == []


def test_a_tool_dies_before_its_body_or_after_it_and_is_otherwise_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill sits inside the body: same name, schema, effect and lookup, so the log can't tell the two apart."""
    deaths: list[str] = []
    monkeypatch.setattr(_job, "_die", lambda: deaths.append(runner.current_call().tool))
    plain = triage.Job.of(TASK, tmp_path / "runs", limits=runner.Limits(turns=4))
    deadly = dataclasses.replace(plain, die_before="crash_list", die_after="issue_search")
    _stopped(deadly, new=False)
    assert deaths == ["crash_list", "issue_search", "issue_search"]
    assert plain.agent().definitions == deadly.agent().definitions


def test_a_damaged_log_is_said_to_be_damaged(finished: Done, tmp_path: Path) -> None:
    """A job that started afresh beside a damaged run would do everything twice."""
    done = finished.copy(tmp_path)
    segment = done.job.runs / done.run / "seg-000001.jsonl"
    data = bytearray(segment.read_bytes())
    data[2000] ^= 1
    segment.write_bytes(data)
    with pytest.raises(eventlog.LogDamaged):
        asyncio.run(done.job.run())


def test_the_library_alone_does_not_load_the_trackers_dependencies() -> None:
    """They are an extra: importing runner must work without them."""
    code = "import json, sys, runner; print(json.dumps(sorted({'httpx', 'starlette', 'uvicorn'} & set(sys.modules))))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == []
