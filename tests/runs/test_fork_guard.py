"""The fork guard: what the parent did after the line is offered, not done again, until a person says so."""

from pathlib import Path
from typing import Any

import click.testing
import pytest
from msgspec.structs import replace

import replay
import runner
import runner.testing
from replay.events import AttemptMarked, QuestionAsked, ReplySaved, ResultRecorded
from replay.messages import Reply
from replay.values import ParentEffect
from runner._cli import main
from tests.runs import scenes
from tests.runs.scenes import Shop
from tests.support import stage

LOOK = runner.testing.tool_calls(("look", {"what": "a"}))


def pay(ref: str, invoice: str = "i7") -> Reply:
    """A reply that pays an invoice under some reference."""
    return runner.testing.tool_calls(("pay", {"invoice": invoice, "ref": ref}))


def rewound(runs: Path, shop: Shop, *script: Any, at: int = 2) -> runner.State:
    """A finished run, forked as `f` at a line before its effects."""
    scenes.start(shop, *script, "over", runs=runs, on_question=shop.truth)
    return runner.fork("p", at=at, runs=runs, new="f", who="ann")


def resumed(runs: Path, shop: Shop, *script: Any, **options: Any) -> Any:
    """The fork, carried on by a model that says this."""
    return runner.resume_sync("f", shop.agent(*script, **options), runs=runs, clock=scenes.Still())


def asked(outcome: object) -> runner.Question:
    """The one question of a paused run."""
    assert isinstance(outcome, runner.Paused), outcome
    (question,) = outcome.questions
    return question


def test_a_payment_that_the_rewound_model_makes_again_with_a_new_reference_is_not_made(runs: Path, shop: Shop) -> None:
    """The known attack: same intent, other arguments, another key. The parent's result is offered."""
    state = rewound(runs, shop, LOOK, pay("x"))
    assert state.fork_guard == (
        ParentEffect(
            tool="pay",
            intent=state.fork_guard[0].intent,
            arguments='{"invoice": "i7", "ref": "x"}',
            call="2.0",
            text="did pay i7",
            run="p",
            written='{"invoice": "i7", "ref": "x"}',
        ),
    )
    question = asked(resumed(runs, shop, LOOK, pay("y"), "paid"))
    assert question.kind == "settle"
    assert question.guarded == 0
    assert "(2.0 of p)" in question.why
    assert question.why.endswith("came to: did pay i7")
    invoke = click.testing.CliRunner().invoke
    show, audit = (invoke(main, [word, "f", "--runs", str(runs)]).output for word in ("show", "audit"))
    assert ("is pay done with that?" in show, "is it done with that? (the same call" in audit) == (True, True)
    runner.settle("f", question.id, "ann", "done", runs=runs)
    done = resumed(runs, shop, LOOK, pay("y"), "paid")
    assert done.answer == "paid"
    assert shop.done == {"pay i7": 1}
    (told,) = [e for e in scenes.events(runs, "f") if isinstance(e, ResultRecorded) and e.how == "stated"]
    assert told.text == "did pay i7"
    assert not any(isinstance(e, AttemptMarked) and e.call == "2.0" for e in scenes.events(runs, "f"))


@pytest.mark.fault("an answer is used for another question")
def test_what_a_person_let_a_fork_do_again_is_not_done_again_by_a_fork_of_that(runs: Path, shop: Shop) -> None:
    """They were asked about the first run's payment, and since then there is the fork's own."""
    rewound(runs, shop, LOOK, pay("x"))
    question = asked(resumed(runs, shop, LOOK, pay("x"), "paid"))
    runner.settle("f", question.id, "ann", "rerun", runs=runs)
    answered = runner.read_state("f", runs).seq
    resumed(runs, shop, LOOK, pay("x"), "paid").finished()
    assert shop.done == {"pay i7": 2}
    fork = runner.fork("f", at=answered, runs=runs, new="g", who="ann")
    assert [(effect.call, effect.run) for effect in fork.fork_guard] == [("2.0", "p"), ("2.0", "f")]
    agent = shop.agent(LOOK, pay("x"), "paid")
    question = asked(runner.resume_sync("g", agent, runs=runs, clock=scenes.Still()))
    assert "(2.0 of p, 2.0 of f)" in question.why
    assert shop.done == {"pay i7": 2}
    runner.settle("g", question.id, "ann", "rerun", runs=runs)
    runner.resume_sync("g", agent, runs=runs, clock=scenes.Still()).finished()
    assert shop.done == {"pay i7": 3}


@pytest.mark.fault("a default that changes between a fork's parent and the fork")
@pytest.mark.parametrize("current", ["usd", None])
def test_the_same_words_are_the_same_call_whatever_their_defaults_are_by_then(current: str | None, runs: Path) -> None:
    """A deploy between the parent's payment and the fork's gave an argument another default, or took it away."""
    paid: list[str] = []

    def agent(currency: str | None) -> runner.Agent:
        @runner.tool(name="pay")
        def pay_in(to: str, currency: str = currency or "") -> str:
            """Pay."""
            paid.append(to + currency)
            return "paid"

        @runner.tool(name="pay")
        def pay_plainly(to: str) -> str:
            """Pay."""
            paid.append(to)
            return "paid"

        script: list[Any] = [runner.testing.tool_calls(("pay", {"to": "bob"})), "over"]
        tool = pay_plainly if currency is None else pay_in
        return runner.Agent(name="shop", model=runner.testing.ScriptedModel(script), tools=[tool])

    runner.start_sync(agent("eur"), "Pay Bob.", runs=runs, run="p")
    runner.fork("p", at=2, runs=runs, new="f")
    question = asked(runner.resume_sync("f", agent(current), runs=runs))
    assert question.guarded == 0
    assert paid == ["bobeur"]


def test_what_a_person_found_instead_becomes_the_result(runs: Path, shop: Shop) -> None:
    """They may know more than the parent's log."""
    rewound(runs, shop, LOOK, pay("x"))
    question = asked(resumed(runs, shop, LOOK, pay("y")))
    runner.settle("f", question.id, "ann", "done", "paid, and booked", runs=runs)
    resumed(runs, shop, LOOK, pay("y"), "paid")
    assert [e.text for e in scenes.events(runs, "f") if isinstance(e, ResultRecorded)][-1] == "paid, and booked"


def test_what_a_person_lets_run_again_runs_once_under_the_forks_own_key(runs: Path, shop: Shop) -> None:
    """`rerun` is a person's word, and covers this call alone."""
    rewound(runs, shop, LOOK, pay("x"))
    script = (LOOK, pay("y"), pay("z"), "paid twice")
    question = asked(resumed(runs, shop, *script))
    runner.settle("f", question.id, "ann", "rerun", runs=runs)
    done = resumed(runs, shop, *script)
    assert done.answer == "paid twice"
    assert shop.done == {"pay i7": 2}
    assert list(shop.keys) == [stage.key(runs, "2.0", "p"), stage.key(runs, "2.0", "f")]
    refused = [e for e in scenes.events(runs, "f") if isinstance(e, ResultRecorded) and e.how == "refused"]
    assert [(e.call, e.first) for e in refused] == [("3.0", "2.0")], "the intent has happened in the fork, too"


def test_an_intent_that_was_settled_by_the_parents_result_has_happened(runs: Path, shop: Shop) -> None:
    """Nobody is asked about it twice."""
    rewound(runs, shop, LOOK, pay("x"))
    question = asked(resumed(runs, shop, LOOK, pay("y"), pay("z"), "over"))
    runner.settle("f", question.id, "ann", "done", runs=runs)
    done = resumed(runs, shop, LOOK, pay("y"), pay("z"), "over")
    assert done.answer == "over"
    assert shop.done == {"pay i7": 1}


@pytest.mark.parametrize(
    ("made", "again"),
    [
        (("put", '{"what":"a"}'), ("put", '{ "what" : "\\u0061" }')),
        (("bell", "{}"), ("bell", '{"times": 1}')),
        (("bell", '{"times": 1}'), ("bell", "{}")),
        (("send", '{"to": "ada"}'), ("send", '{"to": "ada"}')),
    ],
)
def test_where_no_intent_is_named_the_same_arguments_count_however_they_are_written(
    runs: Path, shop: Shop, made: tuple[str, str], again: tuple[str, str]
) -> None:
    """Spaces, escapes and a default that is left out make no other call."""
    rewound(runs, shop, LOOK, runner.testing.tool_calls(made))
    assert asked(resumed(runs, shop, LOOK, runner.testing.tool_calls(again), "over")).guarded == 0
    assert sum(shop.done.values()) == 1


def test_other_arguments_other_tools_reads_and_what_failed_are_not_guarded(runs: Path, shop: Shop) -> None:
    """The fork guard has effects, and a model that does something else is free."""
    state = rewound(
        runs, shop, LOOK, runner.testing.tool_calls(("look", {"what": "b"}), ("put", {"what": "a"}), ("put", "{"))
    )
    assert [(f.tool, f.call) for f in state.fork_guard] == [("put", "2.1")]
    script = (
        LOOK,
        runner.testing.tool_calls(("look", {"what": "b"}), ("put", {"what": "b"}), ("send", {"to": "a"})),
        "over",
    )
    assert resumed(runs, shop, *script).answer == "over"
    assert shop.done == {"put a": 1, "put b": 1, "send a": 1}


def test_an_effect_of_the_parent_that_nobody_settled_is_guarded_as_one_that_may_have_happened(
    runs: Path, shop: Shop
) -> None:
    """No result can be offered, and running it again could do it twice."""
    shop.silent = {"bell 1"}
    outcome = scenes.start(shop, LOOK, runner.testing.tool_calls(("bell", {})), runs=runs)
    assert isinstance(outcome, runner.Paused)
    state = runner.fork("p", at=2, runs=runs, new="f")
    assert [(f.tool, f.happened, f.text) for f in state.fork_guard] == [("bell", False, "")]
    question = asked(resumed(runs, shop, LOOK, runner.testing.tool_calls(("bell", {})), "over"))
    assert question.why.endswith("and may have happened")
    runner.settle("f", question.id, "ann", "done", "it rang", runs=runs)
    assert resumed(runs, shop, LOOK, runner.testing.tool_calls(("bell", {})), "over").answer == "over"
    assert shop.done == {"bell 1": 1}


def test_no_approval_after_the_line_is_inherited(runs: Path, shop: Shop) -> None:
    """The yes was for the parent's call; the fork's asks again, once a person has let it repeat the effect."""
    sign = runner.testing.tool_calls(("sign", {"what": "a"}))
    rewound(runs, shop, LOOK, sign)
    first = asked(resumed(runs, shop, LOOK, sign, "over"))
    assert (first.kind, first.guarded) == ("settle", 0)
    runner.settle("f", first.id, "ann", "rerun", runs=runs)
    second = asked(resumed(runs, shop, LOOK, sign, "over"))
    assert (second.kind, second.guarded) == ("approve", None)
    assert shop.done == {"sign a": 1}
    runner.approve("f", second.id, "ann", runs=runs)
    assert resumed(runs, shop, LOOK, sign, "over").answer == "over"
    assert shop.done == {"sign a": 2}


def test_an_approval_before_the_line_is_inherited_and_one_after_it_is_not(runs: Path, shop: Shop) -> None:
    """What a person had said at that line they had said."""
    sign = runner.testing.tool_calls(("sign", {"what": "a"}), ("sign", {"what": "b"}))
    scenes.start(shop, sign, "over", runs=runs)
    runner.approve("p", "1.0-approve", "ann", runs=runs)
    at = scenes.lines(runs, "p")[-1].seq
    runner.approve("p", "1.1-approve", "ann", runs=runs)
    runner.fork("p", at=at, runs=runs, new="f")
    question = asked(resumed(runs, shop, sign, "over"))
    assert (question.id, shop.done) == ("1.1-approve", {})


def test_the_fork_guards_questions_and_the_approvals_of_a_reply_are_asked_in_one_line(runs: Path, shop: Shop) -> None:
    """A person is disturbed once; "approve off" answers the approvals and never the fork guard."""
    both = runner.testing.tool_calls(("put", {"what": "a"}), ("sign", {"what": "b"}))
    rewound(runs, shop, LOOK, runner.testing.tool_calls(("put", {"what": "a"})))
    outcome = resumed(runs, shop, LOOK, both, "over")
    assert isinstance(outcome, runner.Paused)
    assert [(q.id, q.kind) for q in outcome.questions] == [("2.0-settle-1", "settle"), ("2.1-approve", "approve")]
    question = asked(resumed(runs, shop, LOOK, both, "over", approve="off"))
    assert question.id == "2.0-settle-1"
    runner.settle("f", question.id, "ann", "done", runs=runs)
    assert resumed(runs, shop, LOOK, both, "over", approve="off").answer == "over"
    assert shop.done == {"put a": 1, "sign b": 1}


def test_a_tool_that_no_longer_names_its_intent_is_still_guarded(runs: Path, shop: Shop) -> None:
    """The current code decides what a call is, and what the parent's marker said holds as well."""
    rewound(runs, shop, LOOK, pay("x"))

    @runner.tool(effect="non_idempotent", name="pay", once_per=("invoice",))
    def other(invoice: str, note: str = "") -> str:
        return shop.act(f"pay {invoice} {note}")

    model = runner.testing.ScriptedModel([LOOK, runner.testing.tool_calls(("pay", {"invoice": "i7"}))])
    agent = runner.Agent(model=model, tools=[shop.tools()[0], other], name="shopper")
    assert asked(runner.resume_sync("f", agent, runs=runs)).guarded == 0


def test_a_long_result_is_shown_shortened_in_the_question_and_taken_whole(runs: Path, shop: Shop) -> None:
    """A question is read by a person."""
    long = "a" * 5000
    rewound(runs, shop, LOOK, runner.testing.tool_calls(("put", {"what": long})))
    question = asked(resumed(runs, shop, LOOK, runner.testing.tool_calls(("put", {"what": long})), "over"))
    assert len(question.why) < 600
    runner.settle("f", question.id, "ann", "done", runs=runs)
    resumed(runs, shop, LOOK, runner.testing.tool_calls(("put", {"what": long})), "over")
    texts = [e.text for e in scenes.events(runs, "f") if isinstance(e, ResultRecorded)]
    assert texts[-1] == f"did put {long}"


@pytest.mark.parametrize("place", [-1, 1, 99])
def test_a_question_about_an_effect_that_the_fork_guard_does_not_have_is_illegal(
    runs: Path, shop: Shop, place: int
) -> None:
    """The fold checks it: else any call could be settled without an attempt."""
    rewound(runs, shop, LOOK, pay("x"))
    question = asked(resumed(runs, shop, LOOK, pay("y"), "over"))
    at = scenes.seq_of(runs, "f", QuestionAsked)
    before = replay.load(scenes.lines(runs, "f")[:at])
    (event,) = [e for e in scenes.events(runs, "f") if isinstance(e, QuestionAsked)]
    reply = next(e for e in reversed(scenes.events(runs, "f")) if isinstance(e, ReplySaved))
    here = replay.step(before, reply, question.at)
    replay.step(here, event, question.at)
    for wrong in (replace(event, guarded=place), replace(event, guarded=None), replace(event, tool="put")):
        with pytest.raises(replay.IllegalEvent):
            replay.step(here, wrong, question.at)
    told = ResultRecorded(call="2.0", how="stated", text="so it was")
    with pytest.raises(replay.IllegalEvent, match="nothing to settle"):
        replay.step(here, told, question.at)


def test_an_audit_of_a_fork_says_where_it_comes_from_and_what_is_guarded(runs: Path, shop: Shop) -> None:
    """An auditor must not take the parent's lines for what this run did, and sees what was settled by whom."""
    rewound(runs, shop, LOOK, pay("x"))
    question = asked(resumed(runs, shop, LOOK, pay("y"), "paid"))
    runner.settle("f", question.id, "ann", "done", runs=runs)
    resumed(runs, shop, LOOK, pay("y"), "paid")
    told = replay.audit(scenes.lines(runs, "f"))
    found = {finding.kind: finding.says for finding in told.findings}
    assert found["forked"] == "it goes on from line 2 of p; not to be done again: pay (2.0 of p)"
    assert found["settled-by-person"].startswith("ann settled pay (2.0) with done")
    assert [life.kind for life in told.lives] == ["start", "fork", "resume", "answer", "resume"]


def test_of_several_effects_that_a_call_would_repeat_a_known_one_is_offered_and_all_are_named(
    runs: Path, shop: Shop
) -> None:
    """Asked only about the one that nobody knows of, a person might say no, and the known one would happen again."""
    bell = runner.testing.tool_calls(("bell", {}))

    def breaks(_: runner.Request) -> runner.Reply:
        shop.silent = {"bell 1"}
        return bell

    outcome = scenes.start(shop, LOOK, bell, runner.testing.tool_calls(("bell", {"times": 1})), breaks, runs=runs)
    assert isinstance(outcome, runner.Paused)
    state = runner.fork("p", at=2, runs=runs, new="f")
    assert [f.happened for f in state.fork_guard] == [True, True, False]
    question = asked(resumed(runs, shop, LOOK, bell, "over"))
    assert question.guarded == 1
    assert "(2.0 of p, 3.0 of p, 4.0 of p) and came to: did bell 1" in question.why
