"""Output types: an answer is a value of the agent's type, or the model is told why not, and then the run stops."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import runner
from replay.messages import ToolResults, UserMessage
from runner._agent.output import FINAL
from runner.models.anthropic import Anthropic
from runner.models.openai import Chat, Responses
from runner.testing import ScriptedModel, tool_calls

RUN = "r1"
FITS = '{"order": "o-1", "cents": 5}'


class Refund(msgspec.Struct, tag="refund"):
    """One kind of answer."""

    order: str
    cents: Annotated[int, msgspec.Meta(ge=0)]


class Refusal(msgspec.Struct, tag="refusal"):
    """Another."""

    why: str


class Plain(msgspec.Struct):
    """The usual answer."""

    order: str
    cents: Annotated[int, msgspec.Meta(ge=0)] = 9


class Tree(msgspec.Struct):
    """A type that contains itself."""

    name: str
    below: list[Tree] = []


class Row(TypedDict):
    """A dictionary."""

    order: str


class Modelled(pydantic.BaseModel):
    """pydantic's."""

    order: str


@runner.tool(effect="reads")
def look(order: str) -> str:
    """Look."""
    return order


def agent(script: Sequence[Any], output: Any = Plain, **options: Any) -> runner.Agent[None, None, Any]:
    """An agent whose model says this."""
    return runner.Agent(name="a", model=ScriptedModel(script), tools=[look], output=output, **options)


def final(arguments: str | dict[str, Any], *others: tuple[str, dict[str, Any]]) -> Any:
    """A reply that calls the final tool, after others."""
    return tool_calls(*others, (FINAL, arguments))


KINDS: list[tuple[Any, str, Any]] = [
    (Plain, FITS, Plain("o-1", 5)),
    (Plain, '{"order": "o-1", "cents": null}', Plain("o-1", 9)),
    (Plain, '{"order": "o-1", "cents": "5"}', Plain("o-1", 5)),
    (Refund | Refusal, '{"output": {"type": "refusal", "why": "no"}}', Refusal("no")),
    (Refund | Refusal, '{"type": "refund", "order": "o", "cents": 1}', Refund("o", 1)),
    (list[Plain], '{"output": [{"order": "o-1"}]}', [Plain("o-1")]),
    (list[int], "[1, 2]", [1, 2]),
    (dict[str, int], '{"output": 5}', {"output": 5}),
    (dict[str, Any], '{"output": {"output": 5}}', {"output": 5}),
    (Literal["yes", "no"], '"yes"', "yes"),
    (int, '{"output": 7}', 7),
    (Plain | None, '{"output": null}', None),
    (Row, '{"order": "o"}', {"order": "o"}),
    (Modelled, '{"order": "o"}', Modelled(order="o")),
    (Tree, '{"name": "a", "below": [{"name": "b"}]}', Tree("a", [Tree("b")])),
]


@pytest.mark.parametrize(("kind", "says", "value"), KINDS, ids=[f"{number}" for number in range(len(KINDS))])
@pytest.mark.parametrize("by", ["text", "tool"])
def test_an_answer_is_a_value_of_its_type(kind: Any, says: str, value: Any, by: str, tmp_path: Path) -> None:
    """Whether it comes as a text or by the final tool; and again from the log, in another life."""
    reply = says if by == "text" else final(says if says.startswith("{") else f'{{"output": {says}}}')
    made = agent([reply], kind)
    done = runner.start_sync(made, "go", runs=tmp_path, run=RUN).finished()
    assert done.output == value
    assert runner.resume_sync(RUN, made, runs=tmp_path).finished().output == value
    assert not runner.review.retrace(RUN, made, runs=tmp_path).drift


BAD: list[tuple[Any, str]] = [
    ("All done.", "they are not valid JSON"),
    ('{"order": 5}', "order: Expected `str`, got `int`"),
    ('{"order": "o", "cents": -1}', "cents: Expected `int` >= 0"),
    ('{"order": "o", "cent": 1}', "did you mean `cents`?"),
    (final('{"order": 5}'), "order: Expected `str`, got `int`"),
    (final("{"), "they are not valid JSON"),
    (final(FITS, ("look", {"order": "o-1"})), "Other calls came with it"),
    (msgspec.structs.replace(final(FITS), stop="length"), "cut at its length limit"),
    (tool_calls((FINAL, FITS), (FINAL, FITS)), "Other calls came with it"),
]


@pytest.mark.parametrize(("bad", "says"), BAD, ids=[f"{number}" for number in range(len(BAD))])
@pytest.mark.fault("an answer that is none of the type")
def test_the_model_is_told_why_its_answer_is_none(bad: Any, says: str, tmp_path: Path) -> None:
    """As a message, or as the result of its call; what other calls came to stands before it."""
    done = runner.start_sync(agent([bad, FITS]), "go", runs=tmp_path, run=RUN).finished()
    assert done.output == Plain("o-1", 5)
    told = done.state.messages[2]
    assert isinstance(told, UserMessage | ToolResults)
    text = told.text if isinstance(told, UserMessage) else told.results[-1].text
    assert says in text
    assert [f.kind for f in runner.review.audit(RUN, tmp_path).story.findings].count("reply-refused") >= 1


def test_other_calls_of_a_reply_run_before_its_answer_is_refused(tmp_path: Path) -> None:
    """The answer was given before their results were known."""
    script = [tool_calls((FINAL, FITS), ("look", {"order": "o-1"})), final(FITS)]
    done = runner.start_sync(agent(script), "go", runs=tmp_path).finished()
    (results,) = (m for m in done.state.messages[:4] if isinstance(m, ToolResults))
    assert [(one.tool, one.how) for one in results.results] == [(FINAL, "no_output"), ("look", "ran")]


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("bad", ["none", final("{}")], ids=["text", "tool"])
@pytest.mark.fault("a model that never answers as asked is asked for ever")
def test_after_some_refusals_in_a_row_the_run_stops_and_a_resume_asks_again(
    bad: Any, retries: int, tmp_path: Path
) -> None:
    """A call that comes to something in between begins the count anew."""
    some: list[Any] = [bad] * retries
    made = agent([*some, tool_calls(("look", {"order": "o"})), *some, bad, FITS], output_retries=retries)
    with pytest.raises(runner.errors.OutputInvalid, match="not what was asked for"):
        runner.start_sync(made, "go", runs=tmp_path, run=RUN)
    assert runner.read_state(RUN, tmp_path).turns == 2 * retries + 2
    with_more = made.replace(output_retries=1)
    assert runner.resume_sync(RUN, with_more, runs=tmp_path).finished().output == Plain("o-1", 5)
    assert (
        runner.review.retrace(RUN, made.replace(output_retries=retries), runs=tmp_path).divergence is None
        or not retries
    )


def test_a_function_of_the_users_may_refuse(tmp_path: Path) -> None:
    """With a reason that it returns, or by what it raises."""

    def judge(refund: Plain) -> str | None:
        if refund.cents > 100:
            raise ValueError("above the limit")
        return None if refund.cents else "nothing is no refund"

    script = ['{"order": "o", "cents": 0}', '{"order": "o", "cents": 500}', FITS]
    done = runner.start_sync(agent(script, validate=judge), "go", runs=tmp_path).finished()
    told = [message.text for message in done.state.messages[:] if isinstance(message, UserMessage)]
    assert "nothing is no refund" in told[1]
    assert "ValueError: above the limit" in told[2]


def test_a_final_tool_needs_no_approval_and_no_key(tmp_path: Path) -> None:
    """Nothing is marked: it acts on nothing."""
    runner.start_sync(agent([final(FITS)]), "go", runs=tmp_path, run=RUN)
    (call,) = runner.review.audit(RUN, tmp_path).story.calls
    assert (call.tool, call.how, call.attempts) == (FINAL, "output", [])


def test_a_declaration_that_can_not_work_is_refused() -> None:
    """A type without JSON, a tool of the final one's name, a count that is none."""

    @runner.tool(name=FINAL)
    def other() -> None: ...

    for options in ({"output": ScriptedModel}, {"tools": [other]}, {"output_retries": -1}, {"validate": "no"}):
        with pytest.raises(runner.BadAgent):
            agent([], **{"output": Plain, **options}) if "tools" not in options else runner.Agent(
                name="a", model=ScriptedModel([]), output=Plain, tools=[other]
            )


@pytest.mark.fault("a deploy changes the type of an answer that stands in a log")
def test_another_type_is_drift_and_an_old_answer_of_another_type_a_divergence(tmp_path: Path) -> None:
    """Retrace and preflight name it; a finished run of it gives no value that it is not."""
    runner.start_sync(agent([tool_calls(("look", {"order": "o"})), FITS]), "go", runs=tmp_path, run=RUN)
    other = agent([], Row)
    found = runner.review.retrace(RUN, other, runs=tmp_path)
    assert found.divergence is not None
    assert "output" in {drift.part for drift in found.drift}
    with pytest.raises(runner.BadAgent, match="the answer is no Row"):
        runner.resume_sync(RUN, other, runs=tmp_path)
    runner.fork(RUN, at=2, runs=tmp_path, new="f1", who="ada")
    (told,) = runner.review.preflight(tmp_path, other)
    assert "the output changed" in [issue.says for issue in told.issues]
    again = runner.resume_sync("f1", agent(["", FITS]), runs=tmp_path).finished()
    assert again.output == Plain("o-1", 5)


@pytest.mark.fault("a mask makes another decision of an exported answer")
def test_an_export_whose_mask_spoils_the_answer_is_refused(tmp_path: Path) -> None:
    """It would be a run that its own agent did not decide."""
    made = agent(['{"order": "password=hunter2hunter2", "cents": 1}'], validate=lambda out: _known(out.order))
    runner.start_sync(made, "go", runs=tmp_path, run=RUN)
    with pytest.raises(runner.review.CannotExport):
        runner.review.export(RUN, made, runs=tmp_path)


def _known(order: str) -> str | None:
    return None if "hunter2" in order else "there is no such order"


NATIVE: dict[str, Any] = {"Anthropic": Anthropic, "Responses": Responses, "Chat": Chat}


@pytest.mark.parametrize("vendor", NATIVE)
def test_a_schema_goes_to_the_vendor_where_it_can_be_expressed(vendor: str) -> None:
    """Closed objects, every field required, what is not checked in words; else the final tool takes the answer."""
    model: Any = NATIVE[vendor]("m")
    held = {kind: agent([], kind).replace(model=model).answers for kind in (Plain, int, Row, Refund)}
    for one in held.values():
        assert one is not None
        assert one.tool is None
    plain = held[Plain]
    assert plain is not None
    assert plain.native is not None
    assert (plain.native["required"], plain.native["additionalProperties"]) == (["order", "cents"], False)
    cents = plain.native["properties"]["cents"]
    assert "null means 9" in cents["description"]
    assert ('"minimum"' in json.dumps(plain.native)) == (vendor != "Anthropic")
    for kind in (dict[str, int], tuple[int, str], Any):
        by_tool = agent([], kind).replace(model=model).answers
        assert by_tool is not None
        assert by_tool.native is None
        assert by_tool.tool is not None
    tree = agent([], Tree).replace(model=model).answers
    assert tree is not None
    assert (tree.native is None) == (vendor == "Anthropic")
    told = agent([]).replace(model=NATIVE[vendor]("m", schemas=False))
    assert [spec.name for spec in told.specs] == ["look", FINAL]


@pytest.mark.fault("a drained run asks its model again")
@pytest.mark.usefixtures("unmeasured_sigterm")
def test_a_drained_run_does_not_ask_again_for_an_answer_that_is_none(tmp_path: Path) -> None:
    """It is parked, and asked again by whoever resumes it."""

    def ends(_: runner.Request) -> runner.Reply:
        os.kill(os.getpid(), signal.SIGTERM)
        return runner.Reply(text="none")

    made = agent([ends, FITS])
    with pytest.raises(runner.errors.Interrupted):
        runner.start_sync(made, "go", runs=tmp_path, run=RUN)
    assert runner.read_state(RUN, tmp_path).turns == 1
    assert runner.resume_sync(RUN, made, runs=tmp_path).finished().output == Plain("o-1", 5)
