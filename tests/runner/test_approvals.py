"""Approvals: asked together, answered in any order from any process, once, and for exactly what was shown (row 25)."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from tests.runner import stage
from tests.runner.stagehand import Stagehand


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


THREE = [runner.calls(("pay", {"who": "a"}), ("pay", {"who": "b"}), ("pay", {"who": "c"})), "over"]


def resume(runs: Path, desk: Desk, script: list[object], **options: object) -> object:
    """Resume the run."""
    return runner.resume_sync("r", stage.agent(script, *desk.tools), runs=runs, **options)


def test_all_approvals_of_a_reply_are_asked_in_one_line_before_its_first_call(runs: Path, desk: Desk) -> None:
    """A person decides about the whole of it, not about the second call after the first was done."""
    script = [runner.calls(("give", {"much": 5}), *(("pay", {"who": who}) for who in "ab")), "over"]
    questions = stage.asked(stage.start(script, *desk.tools, runs=runs))
    assert [question.call for question in questions] == ["1.1", "1.2"]
    assert desk.did == []
    last = stage.lines(runs)[-1]
    assert [type(event).__name__ for event in last] == ["ReplySaved", *["QuestionAsked"] * 2, "PhaseChanged"]


@pytest.mark.parametrize("order", list(itertools.permutations("012")))
def test_answers_in_any_order_land_on_their_own_calls(runs: Path, desk: Desk, order: tuple[str, ...]) -> None:
    """Hazard 34: one is refused, with its reason; between the answers the run stays paused."""
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


def test_a_death_between_the_answers_loses_neither(stagehand: Stagehand, runs: Path, desk: Desk) -> None:
    """Hazard 34: each answer is a line of its own, whoever dies after it."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    stagehand.play("answers_and_dies", runs=runs, question="1.2-approve").killed()
    assert [question.id for question in stage.asked(resume(runs, desk, THREE))] == ["1.0-approve", "1.1-approve"]
    stagehand.play("answers_and_dies", runs=runs, question="1.0-approve").killed()
    runner.refuse("r", "1.1-approve", "olga", runs=runs)
    assert stage.finished(resume(runs, desk, THREE)) == "over"
    assert desk.did == ["paid a", "paid c"]


def test_the_first_answer_wins(runs: Path, desk: Desk) -> None:
    """A second one is an error that says who was first, and writes nothing."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    runner.approve("r", "1.0-approve", "olga", runs=runs)
    before = stage.written(runs)
    for second in (runner.approve, runner.refuse):
        with pytest.raises(runner.AlreadyAnswered, match="olga"):
            second("r", "1.0-approve", "ivan", runs=runs)
    assert stage.written(runs) == before


def test_an_answer_of_the_wrong_kind_is_an_error(runs: Path, desk: Desk) -> None:
    """`settle` says what happened, and nothing has."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    before = stage.written(runs)
    with pytest.raises(runner.WrongAnswer, match="approve"):
        runner.settle("r", "1.0-approve", "olga", "done", "x", runs=runs)
    with pytest.raises(runner.NoSuchQuestion):
        runner.approve("r", "9.9-approve", "olga", runs=runs)
    assert stage.written(runs) == before


def test_an_answer_says_who_when_and_about_which_arguments(runs: Path, desk: Desk) -> None:
    """Names and reasons are stored whatever they hold."""
    (question, *_) = stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    state = runner.refuse("r", question.id, "olga\ud800", "no\ud800", runs=runs)
    answer = state.questions[question.id].answer
    assert answer is not None
    assert (answer.who, answer.text) == ("olga\ufffd", "no\ufffd")
    assert answer.digest == replay.digest(question.arguments.encode())
    assert question.arguments == '{"who": "a"}'


def test_a_predicate_decides_on_the_arguments_and_asks_when_it_raises(runs: Path, desk: Desk) -> None:
    """Small gifts need no yes, large ones do; a predicate with a bug is no yes."""
    script = [runner.calls(("give", {"much": 5})), runner.calls(("give", {"much": 500}), ("odd", {})), "over"]
    questions = stage.asked(stage.start(script, *desk.tools, runs=runs))
    assert [question.call for question in questions] == ["2.0", "2.1"]
    assert desk.did == ["gave 5"]


def test_none_is_asked_for_a_call_that_will_not_run(runs: Path) -> None:
    """An invalid call, and an intent that already happened, need nobody's time."""
    did: list[str] = []

    @runner.tool(approval=True, once_per=("who",))
    def pay(who: str) -> str:
        did.append(who)
        return f"paid {who}"

    script = [
        runner.calls(("pay", {"who": "a"})),
        runner.calls(("pay", {"who": 7}), ("pay", "{"), ("pay", {"who": "a"})),
        "over",
    ]
    stage.asked(stage.start(script, pay, runs=runs))
    runner.approve("r", "1.0-approve", "olga", runs=runs)
    assert stage.finished(runner.resume_sync("r", stage.agent(script, pay), runs=runs)) == "over"
    assert [result.how for result in stage.results(runs).values()] == ["ran", "invalid", "invalid", "refused"]
    assert did == ["a"]
    assert "paid a" in stage.results(runs)["2.2"].text
    assert len(stage.events(runs, replay.QuestionAsked)) == 1


def test_one_yes_covers_every_attempt_of_its_call(runs: Path) -> None:
    """The person was asked about the call; how often the network makes us try is not their business."""
    tries: list[int] = []

    @runner.tool(approval=True)
    def pay(call: runner.Call) -> str:
        tries.append(call.n)
        if call.n < 3:
            raise runner.ToolFailed("busy", retry_after=1)
        return "paid"

    agent = stage.agent([runner.calls(("pay", {})), "over"], pay)
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    runner.approve("r", "1.0-approve", "olga", runs=runs)
    clock = stage.Ticking(stage.NOON.replace(year=2100))
    assert stage.finished(runner.resume_sync("r", agent, runs=runs, clock=clock)) == "over"
    assert tries == [1, 2, 3]
    assert len(stage.events(runs, replay.QuestionAsked)) == 1


def test_approve_off_says_yes_in_the_policys_name(runs: Path, desk: Desk) -> None:
    """The log shows that no person was asked."""
    assert stage.finished(stage.start(THREE, *desk.tools, runs=runs, approve="off")) == "over"
    answers = stage.events(runs, replay.QuestionAnswered)
    assert {answer.who for answer in answers} == {"policy: approve off"}
    assert len(answers) == 3


def test_approve_off_answers_a_question_that_was_open(runs: Path, desk: Desk) -> None:
    """A run that was parked for a yes goes on when today's policy gives it."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    agent = stage.agent(THREE, *desk.tools, approve="off")
    assert stage.finished(runner.resume_sync("r", agent, runs=runs)) == "over"
    assert desk.did == ["paid a", "paid b", "paid c"]


def test_approve_off_never_answers_the_ladder(runs: Path) -> None:
    """Row 25: a policy does not know what happened."""

    @runner.tool(approval=True)
    def pay() -> str:
        raise runner.Unknown("no reply")

    agent = stage.agent([runner.calls(("pay", {})), "over"], pay, approve="off")
    (question,) = stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    assert question.kind == "settle"
    stage.asked(runner.resume_sync("r", agent, runs=runs))


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
    """Row 32: at a start, and at a resume, where the answer comes before the opening and is not counted."""
    assert stage.finished(stage.start(THREE, *desk.tools, runs=runs, on_question=hook)) == "over"
    stage.asked(stage.start(THREE, *desk.tools, runs=runs, run="other"))
    agent = stage.agent(THREE, *desk.tools)
    assert stage.finished(runner.resume_sync("other", agent, runs=runs, on_question=hook)) == "over"
    assert desk.did == ["paid a", "paid b", "paid c"] * 2
    assert runner.read("other", runs).resumes == 0


def test_a_hook_that_answers_some_leaves_the_others_open(runs: Path, desk: Desk) -> None:
    """What comes back are the questions that are still open, at a start and at a resume."""

    def hook(question: runner.Question) -> runner.Answer | None:
        return None if question.call == "1.1" else runner.Answer("approve", "olga")

    questions = stage.asked(stage.start(THREE, *desk.tools, runs=runs, on_question=hook))
    assert [question.call for question in questions] == ["1.1"]
    questions = stage.asked(resume(runs, desk, THREE, on_question=hook))
    assert [question.call for question in questions] == ["1.1"]
    assert len(stage.events(runs, replay.QuestionAnswered)) == 2


def test_a_hook_that_raises_leaves_its_question_open(runs: Path, desk: Desk) -> None:
    """The error is the caller's own; the run can be carried on."""

    def hook(_question: runner.Question) -> None:
        raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="terminal"):
        stage.start(THREE, *desk.tools, runs=runs, on_question=hook)
    assert len(stage.asked(resume(runs, desk, THREE))) == 3


def test_an_answer_while_the_run_is_live_is_refused_by_the_lock(runs: Path, desk: Desk) -> None:
    """One process per run, also for a single word."""
    stage.asked(stage.start(THREE, *desk.tools, runs=runs))
    with eventlog.open(runs, "r"), pytest.raises(eventlog.RunLocked):
        runner.approve("r", "1.0-approve", "olga", runs=runs)
