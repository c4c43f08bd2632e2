"""Recordings: a job plays without money or network, and fails loudly when it is asked something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.messages import UserMessage
from tests.support import stage

SCRIPT = [
    runner.testing.tool_calls(("look", {"x": 1}), text="first"),
    runner.testing.tool_calls(("look", {"x": 2})),
    "over",
]


def looking(answer: str = "seen", **options: Any) -> runner.Tool:
    """The job's tool."""

    def look(x: int) -> str:
        """Look at x."""
        return f"{answer} {x}"

    return runner.tool(effect="reads", name="look", **options)(look)


@pytest.fixture
def recording(tmp_path: Path, runs: Path) -> Path:
    """A recorded job."""
    path = tmp_path / "recording.jsonl"
    model = runner.testing.RecordingModel(stage.scripted(*SCRIPT), path)
    agent = runner.Agent(name="agent", model=model, tools=[looking()], instructions="look around")
    assert stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="recorded")) == "over"
    return path


def play(path: Path, runs: Path, *tools: runner.Tool, **options: Any) -> object:
    """Play the recording in a run of its own."""
    given = {"instructions": "look around", "limits": options.pop("limits", runner.Limits())} | options
    agent = runner.Agent(model=runner.testing.RecordedModel(path), tools=tools or (looking(),), name="agent", **given)
    return runner.start_sync(agent, stage.TASK, runs=runs, run="r")


def test_a_recording_has_a_line_for_each_reply(recording: Path) -> None:
    """Turn by turn, with what each was an answer to."""
    replies = runner.testing.RecordedModel(recording).replies
    assert list(replies) == [(1, "turn"), (2, "turn"), (3, "turn")]
    assert replies[1, "turn"].text == "first"
    assert len(recording.read_text().splitlines()) == 3


def test_a_recording_plays_the_same_job(recording: Path, runs: Path) -> None:
    """Replies, usage and dollars are those of the recorded run."""
    assert stage.finished(play(recording, runs)) == "over"
    assert runner.read_state("r", runs).spent == runner.read_state("recorded", runs).spent


def test_the_text_of_results_may_vary(recording: Path, runs: Path) -> None:
    """Times, paths and addresses differ from run to run; which call of which tool they answer does not."""
    assert stage.finished(play(recording, runs, looking("another text for"))) == "over"


def test_what_the_runner_tells_the_model_may_vary(tmp_path: Path, recording: Path, runs: Path) -> None:
    """A note on files that somebody vouched for is not in the recording; it must not stop the run that got one."""

    def look(x: int, call: runner.Call) -> str:
        """Look at x."""
        call.workspace.write_text("seen", str(x))
        return f"seen {x}"

    tools = [runner.tool(effect="idempotent")(look)]
    (tmp_path / "work").mkdir()
    agent = runner.Agent(
        name="agent", model=runner.testing.RecordingModel(stage.scripted(*SCRIPT), recording), tools=tools
    )
    recording.write_bytes(b"")
    stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="again", workspace=tmp_path / "work"))
    agent = runner.Agent(
        name="agent", model=runner.testing.RecordedModel(recording), tools=tools, limits=runner.Limits(turns=1)
    )
    with pytest.raises(runner.errors.TurnLimit):
        runner.start_sync(agent, stage.TASK, runs=runs, run="r", workspace=tmp_path / "work")
    (tmp_path / "work" / "seen").write_text("edited")
    agent = agent.replace(limits=runner.Limits())
    assert stage.finished(runner.resume_sync("r", agent, runs=runs, accept_workspace="ada")) == "over"
    assert any(isinstance(message, UserMessage) for message in runner.read_state("r", runs).messages[1:])


def test_a_reply_says_beforehand_what_it_costs(recording: Path, runs: Path) -> None:
    """So a lost one is accounted exactly."""
    with pytest.raises(runner.errors.DollarLimit):
        play(recording, runs, limits=runner.Limits(dollars=0.0015))
    assert runner.read_state("r", runs).spent.dollars == 0.002


def other_instructions(path: Path, runs: Path) -> None:
    """Another prompt."""
    play(path, runs, instructions="look harder")


def other_tools(path: Path, runs: Path) -> None:
    """One tool more."""
    play(path, runs, looking(), runner.tool(effect="reads", name="more")(lambda: "x"))


def other_history(path: Path, runs: Path) -> None:
    """The first reply's call was another one."""
    text = path.read_text().replace('\\"x\\": 1', '\\"x\\": 9')
    path.write_text(text)
    play(path, runs)


@pytest.mark.parametrize(
    ("change", "named"),
    [(other_instructions, "instructions"), (other_tools, "tools"), (other_history, "history")],
)
def test_asked_something_else_it_says_which_part_differs(recording: Path, runs: Path, change: Any, named: str) -> None:
    """And only that part; the run stops, nothing is guessed."""
    with pytest.raises(runner.errors.ModelUnavailable) as stopped:
        change(recording, runs)
    differs = {part for part in ("instructions", "tools", "history") if f"{part}" in stopped.value.detail}
    assert differs == {named}
    assert stage.results(runs) == {} or named == "history"


def test_asked_beyond_its_end_it_says_so(recording: Path, runs: Path) -> None:
    """A recording that was cut short is not an endless one."""
    recording.write_text("\n".join(recording.read_text().splitlines()[:2]) + "\n")
    with pytest.raises(runner.errors.ModelUnavailable, match="turn 3"):
        play(recording, runs)


@pytest.mark.parametrize("content", ["{", "[]", '{"turn": "one"}', "\xff"])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str) -> None:
    """Before anything is asked, with its name."""
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(runner.testing.BadRecording, match=r"odd\.jsonl"):
        runner.testing.RecordedModel(path)


def test_a_missing_recording_is_refused(tmp_path: Path) -> None:
    """The same sentence."""
    with pytest.raises(runner.testing.BadRecording):
        runner.testing.RecordedModel(tmp_path / "nowhere")


def test_a_script_that_ends_too_soon_says_so(runs: Path) -> None:
    """A test's script is a recording as well."""
    with pytest.raises(runner.errors.ModelUnavailable, match="turn 2"):
        stage.start([runner.testing.tool_calls(("look", {"x": 1}))], looking(), runs=runs)
