"""A call of an agent is a run of its own, which goes on, asks, stops and ends with the run that called it."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

import replay
import runner
from eventlog import Directory
from replay.events import ChildRested, ChildStarted, ResultRecorded, RunResumed, RunStarted
from replay.values import ParentCall
from runner.errors import ChildRun, NoSuchQuestion
from runner.testing import ScriptedModel, tool_calls
from tests.children import scenes
from tests.children.scenes import PAID, children, events, lead, paying, resume, start
from tests.support.disks import Quick


def test_two_calls_of_an_agent_are_two_runs_side_by_side_whose_answers_are_the_results(
    runs: Directory,
) -> None:
    """Each is marked before it exists, is named after its call, and knows whose it is."""
    outcome = start(lead("a", "b"), runs, labels={"tenant": "acme"}).finished()
    assert outcome.answer == "All is done."
    assert sorted(PAID) == ["a", "b"]
    uid, found = outcome.state.uid, children(runs)
    assert found == [f"clerk-{runner.key(uid, call)[:16]}" for call in ("1.0", "1.1")]
    for call, child in zip(("1.0", "1.1"), found, strict=True):
        state = runner.read_state(child, runs)
        assert (state.parent_call, state.phase) == (ParentCall(run="p", uid=uid, call=call), "done")
        assert (state.uid, state.labels) == (runner.key(uid, call), {"tenant": "acme"})
    results = [e for e in events(runs) if isinstance(e, ResultRecorded)]
    assert [(e.how, e.text) for e in results] == [("ran", "It is paid.")] * 2
    assert outcome.state.turns_used == 2 + 2 * 2


def test_what_a_family_spent_is_what_its_replies_cost_in_parent_and_children_once(runs: Directory) -> None:
    """The parent's total has each child's in it, whatever the order in which they rest."""
    outcome = start(lead("a", "ask b", "c"), runs)
    assert isinstance(outcome, runner.Paused)
    runner.approve("p", outcome.questions[0].id, "ann", runs=runs)
    state = resume(lead("a", "ask b", "c"), runs).finished().state
    assert state.spent.total_dollars == pytest.approx(scenes.spent(runs, "p", *children(runs)))
    assert state.spent.input_tokens == 100 * state.turns_used


@pytest.mark.parametrize("own", [False, True], ids=["by its path in the parent", "in the child itself"])
def test_a_childs_question_is_the_parents_too_and_its_answer_wakes_the_parent(runs: Directory, own: bool) -> None:
    """By the call, a colon, and its id there. What others did meanwhile stays done."""
    agent = lead("ask a", "b")
    paused = start(agent, runs)
    assert isinstance(paused, runner.Paused)
    (question,) = paused.questions
    assert (question.id, question.call, question.tool) == ("1.0:1.0-approve", "1.0:1.0", "pay")
    assert PAID == ["b"]
    (status,) = [info.status for info in runner.list_runs(runs) if info.run == "p"]
    assert status is not None
    assert status.open_questions == (question.id,)
    before = len(events(runs))
    assert isinstance(resume(agent, runs), runner.Paused)
    assert len(events(runs)) == before, "nothing new was written"
    child = children(runs)[0]
    if own:
        runner.approve(child, "1.0-approve", "ann", runs=runs)
    else:
        assert runner.approve("p", question.id, "ann", runs=runs).written
    assert resume(agent, runs).finished().answer == "All is done."
    assert PAID == ["b", "ask a"]
    assert not [e for e in events(runs) if isinstance(e, RunResumed) and e.counted]


def test_a_question_that_no_child_asked_is_no_question(runs: Directory) -> None:
    """A path must lead somewhere."""
    start(lead("ask a"), runs)
    for path in ("1.0:2.0-approve", "1.7:1.0-approve", "1.0:1.0:1.0-approve", ":1.0-approve"):
        with pytest.raises(NoSuchQuestion):
            runner.approve("p", path, "ann", runs=runs)


def test_the_hook_is_asked_for_a_child_and_says_any_kind_of_answer(runs: Directory) -> None:
    """It sees the question by its path, and the child gets what it said."""
    asked: list[str] = []

    def answers(question: runner.Question) -> runner.Answer:
        asked.append(question.id)
        if question.id.startswith("1.0"):
            return runner.Answer("edit", "ann", arguments={"order": "ask c"})
        return runner.Answer("approve", "ann", always={"order": "ask b"})

    start(lead("ask a", "ask b"), runs, on_question=answers).finished()
    assert asked == ["1.0:1.0-approve", "1.1:1.0-approve"]
    assert sorted(PAID) == ["ask b", "ask c"]
    assert len(runner.read_state(children(runs)[1], runs).rules) == 1


def test_nobody_carries_a_child_on_but_whoever_holds_its_parent(runs: Directory) -> None:
    """A second life of it beside the parent would do its calls twice."""
    start(lead("ask a"), runs)
    (child,) = children(runs)
    runner.approve(child, "1.0-approve", "ann", runs=runs)
    with pytest.raises(ChildRun, match=f"{child} is a child of p") as refused:
        runner.resume_sync(child, paying(), runs=runs)
    assert refused.value.hint
    assert [info.run for info in runner.list_unfinished(runs)] == ["p"]


def test_a_child_that_was_stopped_for_good_has_failed_and_the_model_reads_why(runs: Directory) -> None:
    """The parent goes on without it."""
    agent = lead("ask a", "b")
    start(agent, runs)
    runner.stop(children(runs)[0], "mae", runs=runs)
    resume(agent, runs).finished()
    failed, *_ = [e for e in events(runs) if isinstance(e, ResultRecorded) and e.how == "failed"]
    assert "StoppedByPerson: by mae" in failed.text
    assert PAID == ["b"]


def test_a_child_of_a_closed_parent_is_stopped_at_its_next_opening(runs: Directory) -> None:
    """Nobody would take what it comes to."""
    start(lead("ask a"), runs)
    runner.stop("p", "mae", runs=runs)
    (child,) = children(runs)
    assert runner.read_state(child, runs).stopped is None
    with pytest.raises(runner.RunError):
        runner.approve(child, "1.0-approve", "ann", runs=runs)
    stopped = runner.read_state(child, runs).stopped
    assert stopped is not None
    assert (stopped.reason, stopped.final, stopped.detail) == ("ParentClosed", True, "p is over")
    assert PAID == []


def test_a_child_that_a_person_holds_back_holds_its_parent_back_until_that_is_resumed(runs: Directory) -> None:
    """One word holds the family; what runs beside it comes to its end first."""
    said = threading.Event()

    @runner.tool(effect="idempotent", name="pay")
    def parks(order: str) -> str:
        if order == "b":
            runner.park(children(runs)[0], "mae", runs=runs)
            said.set()
        said.wait(30)
        PAID.append(order)
        return "paid"

    agent = lead("a", "b", clerk=paying().replace(tools=[parks]))
    with pytest.raises(runner.errors.Parked, match=r"child clerk-.*: by mae"):
        start(agent, runs)
    assert [e.how for e in events(runs) if isinstance(e, ResultRecorded)] == ["ran"]
    resume(agent, runs).finished()
    assert sorted(PAID) == ["a", "b"]


def test_a_child_reads_inputs_of_its_own(runs: Directory) -> None:
    """The model gives them beside the task, checked like any argument."""

    @runner.tool(effect="reads")
    def who(call: runner.Call[int, None]) -> str:
        return f"tenant {call.inputs}"

    clerk = runner.Agent(name="clerk", model=ScriptedModel([tool_calls(("who", {})), "done"]), tools=[who], inputs=int)
    calls = tool_calls(("clerk", {"task": "t", "inputs": "x"}), ("clerk", {"task": "t", "inputs": 7}))
    agent = runner.Agent(name="lead", model=ScriptedModel([calls, "over"]), tools=[runner.as_tool(clerk)])
    start(agent, runs).finished()
    invalid, ran = [e for e in events(runs) if isinstance(e, ResultRecorded)]
    assert (invalid.how, ran.how) == ("invalid", "ran")
    assert runner.read_state(children(runs)[0], runs).inputs == "7"
    assert "tenant 7" in str(events(runs, children(runs)[0]))


def test_agents_are_nested_five_deep_and_no_deeper() -> None:
    """Said where it is declared."""
    agent = paying()
    for depth in range(5):
        agent = runner.Agent(name=f"a{depth}", model=ScriptedModel([]), tools=[runner.as_tool(agent)])
    with pytest.raises(runner.BadTool, match="nested 6 deep, and 5 is the most"):
        runner.as_tool(agent)


def test_a_grandchilds_question_comes_up_to_the_root(runs: Directory) -> None:
    """By the whole path; and its spend counts once in each."""
    middle = lead("ask a").replace(name="middle")
    calls = tool_calls(("middle", {"task": "go"}), dollars=0.25)
    agent = runner.Agent(name="root", model=ScriptedModel([calls, "over"]), tools=[runner.as_tool(middle)])
    paused = start(agent, runs)
    assert isinstance(paused, runner.Paused)
    assert [question.id for question in paused.questions] == ["1.0:1.0:1.0-approve"]
    runner.approve("p", "1.0:1.0:1.0-approve", "ann", runs=runs)
    state = resume(agent, runs).finished().state
    (child,) = children(runs)
    (grandchild,) = children(runs, child)
    assert state.spent.total_dollars == pytest.approx(scenes.spent(runs, "p", child, grandchild))
    assert PAID == ["ask a"]


@pytest.mark.fault("a process dies between a child's marker and its first line")
def test_a_child_that_was_marked_and_never_made_is_made_by_the_next_life(runs: Directory, tmp_path: Path) -> None:
    """And one that was done when its parent's process died gives its result, and is begun no second time."""
    agent = lead("a", "b")
    start(agent, runs)
    lines = runs.read("p").lines
    seq = next(line.seq for line in lines if any(b'"child_started"' in bytes(raw) for raw in line.events))
    again = Directory(tmp_path / "again", disk=Quick())
    opening, *rest = [line for line in lines if line.events and line.seq <= seq]
    log = again.create("p", at=opening.at, events=[bytes(raw) for raw in opening.events])
    for line in rest:
        log.append(line.at, [bytes(raw) for raw in line.events])
    log.abandon()
    (tmp_path / "runs" / children(runs)[1]).rename(tmp_path / "again" / children(runs)[1])
    PAID.clear()
    assert resume(agent, again).finished().answer == "All is done."
    assert PAID == ["a"]
    begun = [e for name in children(again) for e in events(again, name)]
    assert sum(isinstance(e, RunStarted) for e in begun) == 2


def test_the_current_code_must_still_have_the_agent_of_an_unfinished_child(runs: Directory) -> None:
    """Nothing else may take over its run."""
    agent = lead("ask a")
    start(agent, runs)
    runner.approve("p", "1.0:1.0-approve", "ann", runs=runs)
    before = len(events(runs))
    with pytest.raises(runner.BadAgent, match="is not that agent now"):
        resume(agent.replace(tools=[scenes.pay]), runs)
    assert [type(e) for e in events(runs)[before:]] == [ChildRested]
    resume(agent, runs).finished()


def test_a_retrace_decides_the_same_and_other_limits_of_a_child_are_drift(runs: Directory) -> None:
    """A decision must be explainable a year later."""
    agent = lead("a", "ask b", limits=runner.Limits(turns=30, dollars=9.0))
    start(agent, runs)
    runner.approve("p", "1.1:1.0-approve", "ann", runs=runs)
    resume(agent, runs)
    found = runner.review.retrace("p", agent, runs=runs)
    assert (found.divergence, found.drift) == (None, ())
    for child in children(runs):
        assert runner.review.retrace(child, paying(), runs=runs).divergence is None
    less = lead("a", "ask b", clerk=paying(limits=runner.Limits(turns=3)), limits=agent.limits)
    drift = runner.review.retrace("p", less, runs=runs)
    assert drift.divergence is None
    assert {one.part for one in drift.drift} == {"limits"}
    exported, again = runner.review.export("p", agent, runs=runs)
    assert exported
    assert again.divergence is None
    asked = [question for event in events(runs) if isinstance(event, ChildRested) for question in event.questions]
    masked, _ = runner.review.export("p", agent, runs=runs, patterns=[re.compile("ask b")])
    assert b"ask b" not in masked
    assert asked
    assert not [question for question in asked if question.digest.encode() in masked], "a digest of what was masked"


def test_a_preflight_knows_the_agents_of_children_and_a_guarantee_speaks_of_their_calls(
    runs: Directory,
) -> None:
    """The parent's agent is all that is given."""
    agent = lead("ask a")
    start(agent, runs)
    found = runner.review.preflight(runs, agent)
    assert {one.run for one in found} == {"p", children(runs)[0]}
    assert all(one.able for one in found), found
    (gone,) = [one for one in runner.review.preflight(runs, agent.replace(tools=[])) if one.run == "p"]
    assert not gone.able
    (guarantee,) = runner.review.guarantees(agent)
    assert "child run goes on" in str(guarantee)
    assert guarantee.may_ask


def test_a_story_names_the_child_of_a_call_and_what_it_used(runs: Directory) -> None:
    """A report links to it."""
    start(lead("a"), runs)
    (call,) = replay.audit(runs.read("p").lines).calls
    assert call.child == children(runs)[0]
    assert call.child_spent is not None
    assert call.child_spent.dollars == pytest.approx(scenes.spent(runs, call.child))


def test_calls_beside_children_keep_their_order(runs: Directory) -> None:
    """A wave of children ends before a call that is none, which begins when all of them have their results."""
    calls = tool_calls(
        ("pay", {"order": "x"}), ("clerk", {"task": "a"}), ("clerk", {"task": "b"}), ("pay", {"order": "y"})
    )
    agent = lead("a").replace(model=ScriptedModel([calls, "over"]))
    agent = agent.replace(tools=[*agent.tools, scenes.pay])
    start(agent, runs).finished()
    assert (PAID[0], sorted(PAID[1:3]), PAID[3]) == ("x", ["a", "b"], "y")
    kinds: list[Any] = [type(e) for e in events(runs) if isinstance(e, ChildStarted | ResultRecorded)]
    assert kinds == [ResultRecorded, ChildStarted, ChildStarted, *[ResultRecorded] * 3]
