"""Starting, finishing, continuing and listing runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import eventlog
import runner
import runner.testing
from replay.events import RunResumed, RunStarted
from tests.engine import scenes
from tests.support import stage
from tests.support.forkserver import ForkServer

HOSTILE = ["../x", "a/b", "a\\b", "", ".", "..", "x" * 300, "a\0b", "a\nb", "-rf", "con", "A", "e\u0301", "\u00e9"]


@runner.tool(effect="reads")
def look(x: int = 0) -> int:
    """Look at something."""
    return x


def test_a_run_goes_from_its_task_to_its_answer(runs: Path) -> None:
    """The plain case: reply, call, result, answer, each on disk."""
    outcome = stage.start([runner.testing.tool_calls(("look", {"x": 7})), "seven"], look, runs=runs)
    assert stage.finished(outcome) == "seven"
    assert stage.results(runs)["1.0"].text == "7"
    assert runner.read_state("r", runs).phase == "done"


def test_a_done_run_answers_again_without_a_line_or_an_ask(runs: Path) -> None:
    """The saved answer costs nothing and wears nothing out."""
    stage.start(["the answer"], runs=runs)
    before = stage.written(runs)
    again = stage.agent(["another answer"])
    for _ in range(12):
        assert stage.finished(runner.resume_sync("r", again, runs=runs)) == "the answer"
    assert isinstance(again.model, runner.testing.ScriptedModel)
    assert again.model.asked == 0
    assert stage.written(runs) == before


@pytest.mark.fault("read-only directory")
def test_a_done_run_answers_in_a_directory_that_cannot_be_written(forks: ForkServer) -> None:
    """An archive is read-only, and its answers are still there."""
    assert forks.run(scenes.read_only_done).value == ["the answer", "ReadOnly", 0]


def test_a_run_id_is_never_used_twice(runs: Path) -> None:
    """Keys are made from it."""
    stage.start(["one"], runs=runs)
    before = stage.written(runs)
    with pytest.raises(eventlog.RunExists):
        stage.start(["two"], runs=runs)
    assert stage.written(runs) == before


@pytest.mark.fault("bad run id")
@pytest.mark.parametrize("run", HOSTILE)
def test_a_hostile_run_id_is_refused_before_the_file_system_is_touched(runs: Path, run: str) -> None:
    """It is refused before the file system is touched."""
    with pytest.raises(eventlog.BadRunId):
        stage.start(["x"], runs=runs, run=run)
    with pytest.raises(eventlog.BadRunId):
        runner.resume_sync(run, stage.agent(["x"]), runs=runs)
    assert not runs.exists()


def test_a_default_id_has_the_name_the_day_and_eight_random_characters(runs: Path) -> None:
    """A name that no directory could have is made into one that can."""
    agent = stage.agent(["x"], name="Täglich / prüfen")
    names = {runner.start_sync(agent, stage.TASK, runs=runs, clock=stage.Ticking()).run for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch(r"[a-z0-9-]+-20260101-[0-9a-f]{8}", name) for name in names), names


def test_a_workspace_that_is_missing_is_refused_before_anything_is_made(runs: Path, tmp_path: Path) -> None:
    """A run that could never write is no use to anybody."""
    (tmp_path / "file").write_text("")
    for none in (tmp_path / "nowhere", tmp_path / "file", "\ud800", "a\0b"):
        with pytest.raises(runner.errors.NoWorkspace):
            stage.start(["x"], runs=runs, workspace=none)
    assert not runs.exists()


def test_an_empty_task_is_refused(runs: Path) -> None:
    """A sentence before the first ask is paid for."""
    with pytest.raises(runner.BadAgent, match="task"):
        runner.start_sync(stage.agent(["x"]), "", runs=runs)
    assert not runs.exists()


def test_two_tools_of_one_name_are_refused() -> None:
    """A call names its tool by nothing else."""
    with pytest.raises(runner.BadAgent, match="look"):
        stage.agent(["x"], look, look)


def test_a_finished_run_is_continued_in_a_new_one(runs: Path) -> None:
    """The new run's model reads what the first one said, did and was told."""
    stage.start([runner.testing.tool_calls(("look", {"x": 7})), "seven"], look, runs=runs, run="first")
    seen: list[runner.Request] = []

    def answer(request: runner.Request) -> runner.Reply:
        seen.append(request)
        return runner.Reply(text="go on")

    assert stage.finished(stage.start([answer], look, runs=runs, run="second", after="first")) == "go on"
    told = [type(message).__name__ for message in seen[0].messages]
    assert told == ["UserMessage", "AssistantMessage", "ToolResults", "AssistantMessage", "UserMessage"]
    state = runner.read_state("second", runs)
    assert (state.turns, state.after, state.spent.dollars) == (1, "first", 0.0)


def test_only_a_finished_run_can_be_continued(runs: Path) -> None:
    """Otherwise two runs would carry the same calls on."""
    with pytest.raises(runner.errors.TurnLimit):
        stage.start([runner.testing.tool_calls(("look", {})), "x"], look, runs=runs, limits=runner.Limits(turns=1))
    with pytest.raises(runner.errors.NotFinished):
        stage.start(["x"], runs=runs, run="second", after="r")
    with pytest.raises(eventlog.NoSuchRun):
        stage.start(["x"], runs=runs, run="second", after="nothing")
    assert [entry.run for entry in runner.list_runs(runs)] == ["r"]


def test_a_run_that_does_not_exist_cannot_be_resumed(runs: Path) -> None:
    """Not in a directory that exists, nor in one that does not."""
    with pytest.raises(eventlog.NoSuchRun):
        runner.resume_sync("r", stage.agent(["x"]), runs=runs)
    runs.mkdir()
    with pytest.raises(eventlog.NoSuchRun):
        runner.resume_sync("r", stage.agent(["x"]), runs=runs)


def test_what_a_run_writes_is_for_its_user_alone(runs: Path) -> None:
    """A log holds whatever the agent read."""
    stage.start(["x"], runs=runs)
    modes = {oct(path.stat().st_mode & 0o777) for path in runs.rglob("*") if path.is_file()}
    assert modes == {"0o600"}
    assert oct((runs / "r").stat().st_mode & 0o777) == "0o700"


def test_a_run_stopped_by_a_person_stays_stopped(runs: Path) -> None:
    """For good, by name, with the calls that may have happened."""

    @runner.tool
    def act() -> str:
        raise runner.OutcomeUnknown("no reply")

    stage.asked(stage.start([runner.testing.tool_calls(("act", {})), "x"], act, runs=runs))
    state = runner.stop("r", "olga", runs=runs).state
    assert state.in_doubt == ("1.0",)
    before = stage.written(runs)
    with pytest.raises(runner.errors.StoppedByPerson, match="olga"):
        runner.resume_sync("r", stage.agent(["x"], act), runs=runs)
    with pytest.raises(runner.errors.StoppedByPerson):
        runner.settle("r", "1.0-settle-1", "olga", "rerun", runs=runs)
    with pytest.raises(runner.errors.NotStoppable):
        runner.stop("r", "olga", runs=runs)
    assert stage.written(runs) == before
    assert runner.list_unfinished(runs) == []


def test_a_done_run_cannot_be_stopped(runs: Path) -> None:
    """There is nothing left to stop."""
    stage.start(["x"], runs=runs)
    with pytest.raises(runner.errors.NotStoppable):
        runner.stop("r", "olga", runs=runs)


def test_unfinished_lists_what_a_resume_could_carry_on(runs: Path) -> None:
    """A run that can't be read is listed with its problem, and is not among them."""

    @runner.tool(approval=True)
    def ask() -> str:
        return "x"

    stage.start(["x"], runs=runs, run="done")
    stage.start([runner.testing.tool_calls(("ask", {})), "x"], ask, runs=runs, run="paused")
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(
            [runner.testing.tool_calls(("look", {})), "x"], look, runs=runs, run="limit", limits=runner.Limits(turns=1)
        )
    stage.start(["x"], runs=runs, run="damaged")
    (runs / "damaged" / "status").unlink(missing_ok=True)
    segment = runs / "damaged" / "seg-000001.jsonl"
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    assert {entry.run for entry in runner.list_unfinished(runs)} == {"paused", "limit"}
    problems = {entry.run: type(entry.problem) for entry in runner.list_runs(runs) if entry.problem}
    assert problems == {"damaged": eventlog.LogDamaged}


@pytest.mark.fault("upgrade")
def test_an_upgrade_between_two_lives_uses_the_replies_that_were_saved(runs: Path) -> None:
    """Another prompt, tools reordered, one more; what was paid for counts, and the log shows the drift."""
    more = runner.tool(effect="reads", name="more")(lambda: "x")
    script = [runner.testing.tool_calls(("look", {"x": 7})), "seven"]
    with pytest.raises(runner.errors.TurnLimit):
        stage.start(script, look, more, runs=runs, instructions="old", limits=runner.Limits(turns=1))
    agent = stage.agent([None, "seven"], more, runner.tool(effect="reads", name="new")(lambda: "x"), look)
    assert stage.finished(runner.resume_sync("r", agent.replace(instructions="new"), runs=runs)) == "seven"
    (started,) = stage.events(runs, RunStarted)
    (resumed,) = stage.events(runs, RunResumed)
    assert started.definitions.instructions != resumed.definitions.instructions
    assert resumed.definitions.tools.keys() - started.definitions.tools.keys() == {"new"}
    assert [result.text for result in stage.results(runs).values()] == ["7"]


@pytest.mark.fault("upgrade")
def test_a_run_of_a_later_version_is_read_and_not_carried_on(runs: Path) -> None:
    """An event that nobody knows may say that something happened; guessing would repeat it."""
    with pytest.raises(runner.errors.TurnLimit):
        stage.start([runner.testing.tool_calls(("look", {})), "x"], look, runs=runs, limits=runner.Limits(turns=1))
    with eventlog.store(runs).open("r") as log:
        log.append(stage.NOON, [b'{"type":"moon_phase","is":"full"}'])
    before = stage.written(runs)
    with pytest.raises(runner.errors.CannotContinue, match="moon_phase"):
        runner.resume_sync("r", stage.agent(["x"], look), runs=runs)
    assert stage.written(runs) == before
    assert runner.read_state("r", runs).turns == 1


def test_the_first_line_says_what_the_run_is_made_of(runs: Path) -> None:
    """Drift and audits are judged by it."""
    stage.start(["x"], look, runs=runs, name="painter", limits=runner.Limits(turns=3))
    (started,) = stage.events(runs, RunStarted)
    assert (started.run, started.agent, started.task, started.limits.turns) == ("r", "painter", stage.TASK, 3)
    assert set(started.definitions.tools) == {"look"}


@pytest.mark.fault("start_sync inside a running loop")
def test_a_sync_function_inside_a_running_loop_says_what_to_await(runs: Path) -> None:
    """Asyncio would say that a coroutine was never awaited, after the run was made."""

    async def body() -> None:
        with pytest.raises(runner.RunError, match="start_sync was called inside a running event loop") as refused:
            runner.start_sync(stage.agent(["over"]), stage.TASK, runs=runs)
        assert "await runner.start(" in refused.value.hint

    asyncio.run(body())
    assert not runs.exists()
