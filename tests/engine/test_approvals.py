"""Approvals: asked together, answered in any order from any process, once, and for exactly what was shown."""

from __future__ import annotations

import itertools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import QuestionAnswered
from tests.engine import scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer


class Desk:
    """Tools that need a yes, and what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

        @runner.tool(approval=True)
        def pay(who: str) -> str:
            self.did.append(f"paid {who}")
            return f"paid {who}"

        @runner.tool(approval=lambda arguments: arguments["much"] > 100)
        def give(much: int) -> str:
            self.did.append(f"gave {much}")
            return f"gave {much}"

        @runner.tool(approval=lambda arguments: arguments["missing"] > 0)
        def odd() -> str:
            self.did.append("odd")
            return "odd"

        self.tools = (pay, give, odd)


@pytest.fixture
def desk() -> Desk:
    """A desk where nothing was done yet."""
    return Desk()


THREE = [runner.testing.tool_calls(("pay", {"who": "a"}), ("pay", {"who": "b"}), ("pay", {"who": "c"})), "over"]


def resume(runs: Path, desk: Desk, script: list[object], **options: Any) -> object:
    """Resume the run."""
    return runner.resume_sync("r", stage.agent(script, *desk.tools), runs=runs, **options)


@pytest.mark.fault("two approvals waiting")
@pytest.mark.parametrize("order", list(itertools.permutations("012")))
def test_answers_in_any_order_land_on_their_own_calls(runs: Path, desk: Desk, order: tuple[str, ...]) -> None:
    """One is refused, with its reason; between the answers the run stays paused."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    for place, index in enumerate(order):
        left = stage.asked(resume(runs, desk, THREE))
        assert len(left) == 3 - place
        question = f"1.{index}-approve"
        if index == "1":
            runner.refuse("r", question, "olga", "b is a stranger", runs=runs)
        else:
            runner.approve("r", question, "olga", runs=runs)
    assert desk.did == []
    assert stage.finished(resume(runs, desk, THREE)) == "over"
    assert desk.did == ["paid a", "paid c"]
    assert [result.how for result in stage.results(runs).values()] == ["ran", "refused", "ran"]
    assert "b is a stranger" in stage.results(runs)["1.1"].text
    assert "olga" in stage.results(runs)["1.1"].text


@pytest.mark.fault("two approvals waiting")
def test_a_death_between_the_answers_loses_neither(forks: ForkServer, runs: Path, desk: Desk) -> None:
    """Each answer is a line of its own, whoever dies after it."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    assert forks.run(scenes_deaths.answers_and_dies, runs=runs, question="1.2-approve").killed
    assert [question.id for question in stage.asked(resume(runs, desk, THREE))] == ["1.0-approve", "1.1-approve"]
    assert forks.run(scenes_deaths.answers_and_dies, runs=runs, question="1.0-approve").killed
    runner.refuse("r", "1.1-approve", "olga", runs=runs)
    assert stage.finished(resume(runs, desk, THREE)) == "over"
    assert desk.did == ["paid a", "paid c"]


def test_the_first_answer_wins(runs: Path, desk: Desk) -> None:
    """A second one is an error that says who was first, and writes nothing."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    runner.approve("r", "1.0-approve", "olga", runs=runs)
    before = stage.written(runs)
    for second in (runner.approve, runner.refuse):
        with pytest.raises(runner.errors.AlreadyAnswered, match="olga") as told:
            second("r", "1.0-approve", "ivan", runs=runs)
        assert "`refold audit RUN` tells what came of it" in told.value.hint
    assert stage.written(runs) == before


def test_an_answer_of_the_wrong_kind_is_an_error(runs: Path, desk: Desk) -> None:
    """`settle` says what happened, and nothing has."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    before = stage.written(runs)
    with pytest.raises(runner.errors.WrongAnswer, match="approve"):
        runner.settle("r", "1.0-approve", "olga", "done", "x", runs=runs)
    with pytest.raises(runner.errors.NoSuchQuestion):
        runner.approve("r", "9.9-approve", "olga", runs=runs)
    assert stage.written(runs) == before


def test_an_answer_says_who_when_and_about_which_arguments(runs: Path, desk: Desk) -> None:
    """Names and reasons are stored whatever they hold."""
    (question, *_) = stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    state = runner.refuse("r", question.id, "olga\ud800", "no\ud800", runs=runs).state
    answer = state.questions[question.id].answer
    assert answer is not None
    assert (answer.who, answer.text) == ("olga\ufffd", "no\ufffd")
    assert answer.digest == replay.digest(question.arguments.encode())
    assert question.arguments == '{"who": "a"}'


def yes(question: runner.Question) -> runner.Answer:
    """A hook that agrees."""
    assert question.kind == "approve"
    return runner.Answer("approve", "olga")


async def yes_later(question: runner.Question) -> runner.Answer:
    """The same, async."""
    return yes(question)


@pytest.mark.parametrize("hook", [yes, yes_later])
def test_a_hook_answers_in_the_same_process(
    runs: Path, desk: Desk, hook: Callable[[runner.Question], runner.Answer | Awaitable[runner.Answer]]
) -> None:
    """At a start, and at a resume, where the answer comes before the opening and is not counted."""
    assert stage.finished(stage.start(THREE, *desk.tools, runs=runs, on_question=hook)) == "over"
    stage.asked(stage.start(THREE, *desk.tools, runs=runs, run="other"))
    agent = stage.agent(THREE, *desk.tools)
    assert stage.finished(runner.resume_sync("other", agent, runs=runs, on_question=hook)) == "over"
    assert desk.did == ["paid a", "paid b", "paid c"] * 2
    assert runner.read_state("other", runs).resumes == 0


def test_a_hook_that_answers_some_leaves_the_others_open(runs: Path, desk: Desk) -> None:
    """What comes back are the questions that are still open, at a start and at a resume."""

    def hook(question: runner.Question) -> runner.Answer | None:
        return None if question.call == "1.1" else runner.Answer("approve", "olga")

    questions = stage.asked(stage.start(THREE, *desk.tools, runs=runs, on_question=hook))
    assert [question.call for question in questions] == ["1.1"]
    questions = stage.asked(resume(runs, desk, THREE, on_question=hook))
    assert [question.call for question in questions] == ["1.1"]
    assert len(stage.events(runs, QuestionAnswered)) == 2


def test_a_hook_that_raises_leaves_its_question_open(runs: Path, desk: Desk) -> None:
    """The error is the caller's own; the run can be carried on."""

    def hook(_question: runner.Question) -> None:
        raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="terminal"):
        stage.start(THREE, *desk.tools, runs=runs, on_question=hook)
    assert len(stage.asked(resume(runs, desk, THREE))) == 3


def test_an_answer_while_somebody_holds_the_run_is_left_for_them(runs: Path, desk: Desk) -> None:
    """One process per run writes, also a single word; the next one that opens it takes what was left."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    with eventlog.store(runs).open("r"):
        receipt = runner.approve("r", "1.0-approve", "olga", runs=runs)
    assert receipt.holder is not None
    assert (receipt.written, receipt.holder.pid) == (False, os.getpid())
    runner.refuse("r", "1.1-approve", "olga", runs=runs)
    assert [answer.id for answer in stage.events(runs, QuestionAnswered)] == ["1.0-approve", "1.1-approve"]


def test_a_hook_whose_arguments_never_fit_leaves_the_question_to_somebody_else(runs: Path) -> None:
    """It is asked anew a few times; a hook that does not learn must not fill the log for ever."""

    @runner.tool(approval=True)
    def refund(cents: int) -> str:
        return f"refunded {cents}"

    asked: list[str] = []

    def edits(question: runner.Question) -> runner.Answer | None:
        asked.append(question.id)
        return runner.Answer("edit", "a program", arguments={"cents": "many"}) if len(asked) < 100 else None

    model = runner.testing.ScriptedModel([runner.testing.tool_calls(("refund", {"cents": 5})), "done"])
    agent = runner.Agent(name="a", model=model, tools=[refund])
    for _ in range(2):
        assert isinstance(runner.run_sync(agent, "t", run="r", runs=runs, on_question=edits), runner.Paused)
    assert len(asked) == 5
    runner.refuse("r", "1.0-approve-6", "ada", "no", runs=runs)
    assert runner.resume_sync("r", agent, runs=runs, on_question=edits).finished().answer == "done"


@pytest.mark.parametrize("given", [True, "approve", {"verdict": "approve"}])
def test_a_hook_that_gives_no_answer_is_told_so_and_the_question_stays_open(runs: Path, desk: Desk, given: Any) -> None:
    """An effect needs more of a yes than a value that is true."""
    agent = stage.agent(THREE, *desk.tools)
    with pytest.raises(runner.errors.BadAgent, match=f"on_question gave {type(given).__name__} for 1.0-approve"):
        runner.run_sync(agent, "t", run="r", runs=runs, on_question=lambda _: given)
    assert desk.did == []
    assert isinstance(resume(runs, desk, []), runner.Paused)
