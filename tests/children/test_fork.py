"""A fork of a parent either is refused, or repeats nothing that its parent or the children of that did."""

from __future__ import annotations

import pytest

import runner
from eventlog import Directory
from replay.events import ChildRested, ChildStarted, QuestionAsked
from runner.errors import NotForkable
from tests.children import scenes
from tests.children.scenes import PAID, children, events, lead, resume, start


def family(runs: Directory) -> runner.Agent:
    """A finished parent of two children, of which one asked a person."""
    agent = lead("ask a", "b")
    start(agent, runs)
    runner.approve("p", "1.0:1.0-approve", "ann", runs=runs)
    resume(agent, runs).finished()
    assert sorted(PAID) == ["ask a", "b"]
    return agent


LINES = 12


def _unfinished(runs: Directory, at: int) -> bool:
    """Whether a child had begun before this line, and one of them had no result with it."""
    before, upto = scenes.counts(runs, at - 1), scenes.counts(runs, at)
    return before["child"] > 0 and upto["result"] < before["child"]


@pytest.mark.fault("a fork repeats what a child run did")
@pytest.mark.parametrize("at", range(1, LINES))
def test_a_fork_at_any_line_is_refused_or_pays_nothing_twice(runs: Directory, at: int) -> None:
    """Every payment that a child would repeat is asked about, whichever run made it."""
    agent = family(runs)
    last = len(runs.read("p").lines)
    assert last <= LINES
    if at >= last:
        return
    if _unfinished(runs, at):
        with pytest.raises(NotForkable, match="is unfinished there") as refused:
            runner.fork("p", at=at, runs=runs, new="f")
        assert refused.value.hint
        return
    made = runner.fork("p", at=at, runs=runs, new="f")
    asked = 0
    outcome = runner.resume_sync("f", agent, runs=runs)
    while isinstance(outcome, runner.Paused):
        for question in outcome.questions:
            assert question.kind == "settle", "no child pays again without a person"
            runner.settle("f", question.id, "ann", "done", runs=runs)
            asked += 1
        outcome = runner.resume_sync("f", agent, runs=runs)
    assert sorted(PAID) == ["ask a", "b"], "each was paid once"
    assert asked == len(made.fork_guard)


def test_lines_with_an_unfinished_child_are_refused_and_others_are_not(runs: Directory) -> None:
    """From the line after a child's start to the one before its result."""
    family(runs)
    lines = runs.read("p").lines
    held = [any(b'"child_started"' in bytes(raw) for raw in line.events) for line in lines]
    started = held.index(True)
    results = [seq for seq, line in enumerate(lines) if any(b'"result_recorded"' in bytes(r) for r in line.events)]
    for at in range(1, len(lines) - 1):
        if started < at < results[-1]:
            with pytest.raises(NotForkable, match="fork it at a line before that began, or later"):
                runner.fork("p", at=at, runs=runs, new=f"f{at}")
    assert runner.fork("p", at=started, runs=runs, new="early").fork_guard
    runner.stop("early", "ann", runs=runs)


def test_a_child_is_not_forked_and_an_unfinished_one_that_was_left_behind_is_stopped(runs: Directory) -> None:
    """Its parent would carry the one on, and the fork the other."""
    agent = lead("ask a")
    start(agent, runs)
    (child,) = children(runs)
    with pytest.raises(NotForkable, match="it is a child of p; fork that"):
        runner.fork(child, at=1, runs=runs)
    at = next(line.seq for line in runs.read("p").lines if any(b'"child_started"' in bytes(r) for r in line.events))
    runner.fork("p", at=at, runs=runs, new="f")
    with pytest.raises(runner.RunError):
        runner.approve(child, "1.0-approve", "ann", runs=runs)
    stopped = runner.read_state(child, runs).stopped
    assert stopped is not None
    assert stopped.reason == "ParentClosed"
    assert isinstance(runner.resume_sync("f", agent, runs=runs), runner.Paused)
    assert [e.run for e in events(runs, "f") if isinstance(e, ChildStarted)] != [child]


def test_a_new_child_is_given_its_parents_fork_guard_and_asks_by_the_path(runs: Directory) -> None:
    """What a child did after the line is offered to the one that would do it again."""
    agent = family(runs)
    at = next(line.seq for line in runs.read("p").lines if any(b'"child_started"' in bytes(r) for r in line.events))
    made = runner.fork("p", at=at, runs=runs, new="f")
    assert sorted(effect.run for effect in made.fork_guard) == sorted(children(runs))
    paused = runner.resume_sync("f", agent, runs=runs)
    assert isinstance(paused, runner.Paused)
    assert {question.id for question in paused.questions} == {"1.0:1.0-settle-1", "1.1:1.0-settle-1"}
    for child in children(runs, "f"):
        (question,) = [e for e in events(runs, child) if isinstance(e, QuestionAsked)]
        assert question.guarded is not None
    assert [e for e in events(runs, "f") if isinstance(e, ChildRested)]
    assert scenes.PAID == PAID
