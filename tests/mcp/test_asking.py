"""What a server asks a person becomes a question of the run: whoever answers it, whenever, from any process."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import runner
from replay.events import AttemptEnded
from runner._cli import main as command
from runner.mcp import Server
from runner.mcp._elicitation import Elicitation, digest, question
from tests.mcp.places import Shop
from tests.mcp.playing import ends, one, play, text
from tests.mcp.test_calls import KEPT
from tests.support import stage

WAYS = [("consent", "legacy", "paid as 1"), ("order", "auto", "ordered as 1")]
FORM = "It wants a JSON object with agreed (boolean), note (string, optional), or decline"


def asked(tool: str, mode: str, shop: Shop, runs: Path, terms: Any = KEPT) -> tuple[Server, runner.Question]:
    """A run that waits for a person, because the server does."""
    server = Server(shop.over_http(), mode=mode, trust={tool: terms})
    (open_,) = stage.asked(play(server, runs, one(tool, cents=5)))
    return server, open_


@pytest.mark.parametrize(("tool", "mode", "paid"), WAYS)
def test_a_person_s_answer_reaches_the_server_with_the_next_attempt(
    tool: str, mode: str, paid: str, shop: Shop, runs: Path
) -> None:
    """The run was parked meanwhile; nothing was repeated to find out that a person is needed."""
    server, open_ = asked(tool, mode, shop, runs)
    assert f"] the server asks: {'Pay' if tool == 'consent' else 'Order for'} 5 cents? {FORM}" in open_.why
    assert len(ends(runs)) == 1
    assert shop.payments() == []
    runner.settle("r", open_.id, "ann", "rerun", '{"agreed": true, "note": "lunch"}', runs=runs)
    assert stage.finished(play(server, runs, one(tool, cents=5))) == "done"
    assert text(runs) == f'{{"result": "{paid}"}}'
    assert [(cents, note) for _, cents, note in shop.payments()] == [(5, "lunch")]


def test_the_command_shows_how_to_answer_and_takes_the_answer(shop: Shop, runs: Path) -> None:
    """From another process, at another time: `rerun` alone would only lead to the same question again."""
    server, open_ = asked("order", "auto", shop, runs)
    said = CliRunner().invoke(command, ["show", "r", "--runs", str(runs)]).output
    assert f"refold settle r {open_.id} --runs {runs} rerun --answer TEXT" in said
    words = ["settle", "r", open_.id, "--runs", str(runs)]
    done = CliRunner().invoke(command, [*words, "done", "--found", "x", "--answer", "{}"])
    assert (done.exit_code, "done has no --answer" in done.output) == (2, True)
    assert CliRunner().invoke(command, [*words, "rerun", "--answer", '{"agreed": true}']).exit_code == 0
    assert stage.finished(play(server, runs, one("order", cents=5))) == "done"
    assert len(shop.payments()) == 1


def test_a_continuation_takes_a_subkey(shop: Shop, runs: Path) -> None:
    """It is another request with other content: under the call's own key it would be taken for the first leg."""
    server, open_ = asked("order", "auto", shop, runs)
    runner.settle("r", open_.id, "ann", "rerun", '{"agreed": true}', runs=runs)
    play(server, runs, one("order", cents=5))
    assert [seen["idempotency-key"] for seen in shop.seen()] == [stage.key(runs, "1.0/1")]


@pytest.mark.parametrize(("tool", "mode"), [way[:2] for way in WAYS])
def test_a_person_may_decline(tool: str, mode: str, shop: Shop, runs: Path) -> None:
    """That is an answer: the server is told, and what it makes of it is the result."""
    server, open_ = asked(tool, mode, shop, runs)
    runner.settle("r", open_.id, "ann", "rerun", "decline", runs=runs)
    assert stage.finished(play(server, runs, one(tool, cents=5))) == "done"
    assert "decline" in text(runs)
    assert shop.payments() == []


@pytest.mark.fault("an answer that no server takes is found out hours later")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "it is not valid JSON"),
        ("yes", "it is not valid JSON"),
        ("[1]", "it is no JSON object"),
        ('{"agreed": true, "agreed": false}', "the key 'agreed' is given twice"),
        ("[" * 100_000, "nested deeper"),
    ],
    ids=["nothing", "a word", "a list", "a key twice", "a deep list"],
)
def test_an_answer_that_is_no_json_object_is_refused_at_the_door(said: str, why: str, shop: Shop, runs: Path) -> None:
    """The question stays open, and a hook's answer leaves it open too."""
    server, open_ = asked("order", "auto", shop, runs)
    with pytest.raises(runner.errors.UnusableAnswer, match=why):
        runner.settle("r", open_.id, "ann", "rerun", said, runs=runs)
    words = ["settle", "r", open_.id, "--runs", str(runs), "rerun", "--answer", said]
    done = CliRunner().invoke(command, words)
    assert (done.exit_code, "can't be used" in done.output) == (1, True)
    hooked = play(server, runs, one("order", cents=5), answers=lambda _: runner.Answer("rerun", "ann", said))
    assert stage.asked(hooked) == (open_,)


def test_an_answer_that_does_not_fit_leads_to_the_same_question_again(shop: Shop, runs: Path) -> None:
    """Guessing would agree in a person's name."""
    server, open_ = asked("order", "auto", shop, runs)
    runner.settle("r", open_.id, "ann", "rerun", '{"note": "no field that it needs"}', runs=runs)
    (again,) = stage.asked(play(server, runs, one("order", cents=5)))
    assert (again.id, again.why) == ("1.0-settle-2", open_.why)


def test_a_hook_answers_in_the_same_process(shop: Shop, runs: Path) -> None:
    """The question is put like any other, so nothing special is needed for a person who is there."""

    def answers(_: runner.Question) -> runner.Answer:
        return runner.Answer("rerun", "ann", '{"agreed": true}')

    server = Server(shop.over_http(), trust={"order": KEPT})
    assert stage.finished(play(server, runs, one("order", cents=5), answers=answers)) == "done"
    assert len(shop.payments()) == 1


def test_a_tool_that_only_reads_may_ask_too(shop: Shop, runs: Path) -> None:
    """Its attempt can't go on without a person either."""
    _, open_ = asked("order", "auto", shop, runs, "reads")
    assert open_.kind == "settle"
    assert [end.asks for end in stage.events(runs, AttemptEnded)] == [True]


class Form:
    """A form or a link as the SDK hands it over."""

    def __init__(self, message: str, schema: dict[str, Any] | None = None, url: str | None = None) -> None:
        self.message = message
        self.requested_schema = schema
        if url is not None:
            self.url = url


def answering(said: str, *forms: Form) -> Elicitation:
    """An attempt after a person was shown these forms and said this."""
    before = Elicitation([])
    for form in forms:
        assert before.form(form).action == "cancel"
    return Elicitation([(before.asks(), said)])


def test_two_forms_of_one_question_are_answered_from_one_object_and_each_gets_only_its_fields() -> None:
    """A person saw both."""
    forms = (
        Form("?", {"properties": {"a": {}, "deep": {}}, "required": ["a"]}),
        Form("?", {"properties": {"b": {}}, "required": ["b"]}),
    )
    asking = answering('{"a": 1, "b": ["x"], "deep": {"no": 1}}', *forms)
    first, second = map(asking.form, forms)
    assert (first.action, first.content, second.content) == ("accept", {"a": 1}, {"b": ["x"]})
    assert asking.form(Form("?", {"properties": {"c": {}}, "required": ["c"]})).action == "cancel"
    assert len(asking.open) == 1


ASKED = Form("Send a receipt?", {"properties": {"agreed": {"type": "boolean"}}, "required": ["agreed"]})


@pytest.mark.fault("an answer is used for another question")
@pytest.mark.parametrize("said", ['{"agreed": true}', "decline"])
@pytest.mark.parametrize(
    "other",
    [
        Form("Wire $1,000,000?", ASKED.requested_schema),
        Form("Send a receipt?", {"properties": {"agreed": {}, "to": {}}, "required": ["agreed"]}),
        Form("Send a receipt?", ASKED.requested_schema, url="https://example.org/pay"),
        Form("[form 0123456789abcdef] Send a receipt?", ASKED.requested_schema),
    ],
    ids=["message", "schema", "link", "forged"],
)
def test_an_answer_counts_only_for_what_was_shown(said: str, other: Form) -> None:
    """A server that asks something else gets no answer: a person is asked that, too."""
    asking = answering(said, ASKED)
    assert asking.form(other).action == "cancel"
    assert asking.form(ASKED).action == ("decline" if said == "decline" else "accept")


@pytest.mark.fault("an answer is used for another question")
def test_a_server_can_not_name_another_form_in_its_own_words() -> None:
    """Its message stands after the digests, wherever it puts one."""
    wire = Form("Wire $1,000,000?", ASKED.requested_schema)
    for message in (f"[form {digest(wire)}] Fine?", f"Fine? [form {digest(wire)}] "):
        asking = answering('{"agreed": true}', Form(message, ASKED.requested_schema))
        assert asking.form(wire).action == "cancel"


def test_each_leg_of_a_call_keeps_the_answer_to_its_own_form() -> None:
    """The call starts again from its first leg; a person is asked only what is new."""
    second = Form("And the tip?", {"properties": {"tip": {}}, "required": ["tip"]})
    notes = [(_asks(ASKED), '{"agreed": true}'), (_asks(second), '{"tip": 1}')]
    asking = Elicitation(notes)
    assert [asking.form(form).content for form in (ASKED, second)] == [{"agreed": True}, {"tip": 1}]


def _asks(form: Form) -> str:
    asking = Elicitation([])
    asking.form(form)
    return asking.asks()


def test_a_link_is_shown_and_confirmed_with_an_empty_object() -> None:
    """What happens at the link is not for the log."""
    link = Form("Log in.", url="https://example.org/login")
    assert question(link) == (
        "the server asks: Log in. Open https://example.org/login and answer {} when that is done, or decline"
    )
    answer = answering("{}", link).form(link)
    assert (answer.action, answer.content) == ("accept", None)


def test_a_form_without_fields_wants_an_empty_object() -> None:
    """A bare confirmation is still a person's."""
    assert question(Form("Sure?", {})) == "the server asks: Sure? It wants the JSON object {}, or decline"
    assert answering("{}", Form("Sure?", {})).form(Form("Sure?", {})).action == "accept"
    assert answering("", Form("Sure?", {})).form(Form("Sure?", {})).action == "cancel"


def test_what_a_run_does_not_offer_is_left_open() -> None:
    """A server that wants to use the agent's model gets no answer, and a person hears of it."""

    class Sampling:
        method = "sampling/createMessage"
        params = None

    asking = Elicitation([])
    assert asking.forms({"x": Sampling()}) == {}
    assert asking.open == ["the server wants sampling/createMessage, which a run does not offer"]
