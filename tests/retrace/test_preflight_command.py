"""The command `refold preflight`, and the resume that refuses another agent's run."""

from __future__ import annotations

from pathlib import Path

import pytest

import replay
import runner
from replay import Reply
from tests.cli.conftest import Refold
from tests.decide.story import Story
from tests.retrace import agents
from tests.retrace.histories import calling, logged

AT = "--agent=tests.retrace.agents:"


def test_the_command_says_of_each_run_whether_it_goes_on(runs: Path, refold: Refold) -> None:
    """Exit status 0 when every run can go on, and 1 as soon as one can't."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "good")
    assert refold("preflight", f"{AT}looking").status == 0
    said = refold("preflight", f"{AT}looking_elsewhere")
    assert said.status == 1
    assert "good  tools  can't go on  tool-gone: " in said.out
    found = refold("preflight", f"{AT}looking_elsewhere", "--json").json
    assert [(row["run"], row["able"], row["hitches"][0]["kind"]) for row in found] == [("good", False, "tool-gone")]
    assert found[0]["hitches"][0]["call"] is None


def test_the_command_looks_at_the_runs_of_the_agent_that_is_named(runs: Path, refold: Refold) -> None:
    """Another agent's runs are another deploy's matter."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "good")
    said = refold("preflight", f"{AT}noting")
    assert (said.status, said.out) == (0, "")
    assert "No unfinished runs of noting" in said.err


def test_without_an_agent_a_run_that_could_not_be_held_against_one_counts_as_one_that_can_t(
    runs: Path, refold: Refold
) -> None:
    """What was not looked at must not look like a yes."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "good")
    said = refold("preflight")
    assert said.status == 1
    assert "not-checked: today's agent 'looking' was not given" in said.out


def test_a_triage_run_needs_no_naming(runs: Path, refold: Refold) -> None:
    """Its agent is its task's."""
    triage = pytest.importorskip("runner.triage")
    agent = triage.Job.of("m1-done-after-delete", runs).agent()
    story = Story(agent)
    story.reply(whole=Reply(calls=(replay.ToolCall(tool="crash_list"),)))
    logged(story, runs)
    said = refold("preflight", "--json")
    assert said.status == 0
    assert [(row["agent"], row["able"]) for row in said.json] == [("m1-done-after-delete", True)]


def test_a_run_is_not_carried_on_by_an_agent_of_another_name(runs: Path, refold: Refold) -> None:
    """With another agent's tools its calls would be invalid, and the model would be paid to find that out."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "mine")
    before = (runs / "mine" / "seg-000001.jsonl").read_bytes()
    with pytest.raises(runner.OtherAgent) as refused:
        runner.resume_sync("mine", agents.noting, runs=runs)
    assert str(refused.value) == "mine is a run of agent 'looking', not of 'noting'"
    assert (runs / "mine" / "seg-000001.jsonl").read_bytes().startswith(before.rstrip(b"\0"))
    said = refold("resume", "mine", f"{AT}noting")
    assert said.status == 2
    assert "agent.replace(name=...)" in said.err
    finished = runner.resume_sync("mine", agents.looking.replace(tools=agents.TOOLS), runs=runs)
    assert isinstance(finished, runner.Finished)
