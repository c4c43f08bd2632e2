"""The command `refold preflight`, and the resume that refuses another agent's run."""

from pathlib import Path

import pytest

import replay
import runner
from replay.messages import Reply, ToolCall
from tests.cli.conftest import Refold
from tests.review.retrace import agents
from tests.review.retrace.histories import calling, logged
from tests.support.story import Story

AT = "--agent=tests.review.retrace.agents:"


def test_the_command_says_of_each_run_whether_it_goes_on(runs: Path, refold: Refold) -> None:
    """Exit status 0 when every run goes on as it would have, and 1 as soon as one does not."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "good")
    assert refold("preflight", f"{AT}looking").status == 0
    refold("preflight", f"{AT}looking_elsewhere").ends(1, out="good  tools  needs a look  tool-gone: ")
    found = refold("preflight", f"{AT}looking_elsewhere", "--json").json
    assert [(row["run"], row["able"], row["issues"][0]["kind"]) for row in found] == [("good", False, "tool-gone")]
    assert found[0]["issues"][0]["call"] is None


@pytest.mark.fault("an agent that was renamed leaves its runs behind")
def test_a_run_that_no_agent_can_carry_on_fails_the_preflight(runs: Path, refold: Refold) -> None:
    """Whoever has several agents gives them all."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "good")
    said = refold("preflight", f"{AT}noting").ends(1)
    assert "no-agent: no agent was given for runs of 'looking'" in " ".join(said.out.split())
    assert refold("preflight", f"{AT}noting", f"{AT}looking").status == 0


def test_a_preflight_that_found_nothing_to_check_says_so(runs: Path, refold: Refold) -> None:
    """That is no error, and not the same as a run that was checked."""
    runner.start_sync(agents.looking, "look", runs=runs, run="done")
    said = refold("preflight", f"{AT}noting").ends(0, "")
    assert said.err.endswith("nothing was checked.\n")


@pytest.mark.fault("a typing error passes for a place without runs")
def test_a_directory_that_is_not_there_is_a_mistake_of_the_command_line(refold: Refold, tmp_path: Path) -> None:
    """A deploy that checks nothing must not look like one that checked everything."""
    refold("preflight", f"{AT}noting", "--runs", str(tmp_path / "typo")).ends(2, "", err="there is no directory")


@pytest.mark.fault("two agents of one name")
def test_two_agents_of_one_name_are_refused(runs: Path, refold: Refold) -> None:
    """A run has one current agent; which of two it is can't be said."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "good")
    refold("preflight", f"{AT}looking", f"{AT}looking_elsewhere").ends(
        2, err="two of the agents have one name: looking"
    )
    with pytest.raises(runner.BadAgent, match="one name"):
        runner.review.preflight(runs, [agents.looking, agents.looking_elsewhere])


@pytest.mark.fault("one run's error ends the whole preflight")
def test_a_function_that_raises_for_one_run_leaves_the_others_checked(runs: Path) -> None:
    """The run it raised for is blocked, and says why."""
    for run in ("one", "two"):
        logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, run)

    asked: list[str] = []

    def agent_of(state: replay.State) -> runner.Agent:
        asked.append(state.agent)
        if len(asked) == 1:
            raise KeyError("tenant")
        return agents.looking

    first, second = runner.review.preflight(runs, agent_of)
    assert [issue.says for issue in first.issues] == ["the function that gives its agent raised KeyError: 'tenant'"]
    assert (first.able, second.able) == (False, True)


def test_a_function_of_the_run_s_state_is_asked_for_each_run(runs: Path, refold: Refold) -> None:
    """It may say of a run that it has no agent for it; another one has."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "other")
    triage = pytest.importorskip("runner.triage")
    agent = triage.Job.of("m1-done-after-delete", runs).agent()
    story = Story(agent)
    story.reply(whole=Reply(calls=(ToolCall(tool="crash_list"),)))
    logged(story, runs)
    said = refold("preflight", "--json", "--agent", "runner.triage:agent_of").ends(1)
    assert {row["agent"]: row["able"] for row in said.json} == {"m1-done-after-delete": True, "looking": False}
    assert refold("preflight", "--agent", "runner.triage:agent_of", f"{AT}looking").status == 0


def test_a_run_is_not_carried_on_by_an_agent_of_another_name(runs: Path, refold: Refold) -> None:
    """With another agent's tools its calls would be invalid, and the model would be paid to find that out."""
    logged(calling(("look", '{"x": 1}'), agent=agents.looking), runs, "mine")
    before = (runs / "mine" / "seg-000001.jsonl").read_bytes()
    with pytest.raises(runner.errors.OtherAgent) as refused:
        runner.resume_sync("mine", agents.noting, runs=runs)
    assert str(refused.value) == "mine is a run of agent 'looking', not of 'noting'"
    assert (runs / "mine" / "seg-000001.jsonl").read_bytes().startswith(before.rstrip(b"\0"))
    refold("resume", "mine", f"{AT}noting").ends(2, err="agent.replace(name='looking')")
    finished = runner.resume_sync("mine", agents.looking.replace(tools=agents.TOOLS), runs=runs)
    assert isinstance(finished, runner.Finished)
