"""The acceptance story of typed agents, against servers that speak the vendors' protocols; and its sweep."""

import json
from pathlib import Path
from typing import Any

import pytest

import runner
from replay.messages import ToolResults, UserMessage
from runner import testing
from tests.models.dialects import DIALECTS, KEY, CannedReply
from tests.models.server import Answer, Server
from tests.testing import refunds

RUN = "r1"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that are none."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def _replies() -> list[CannedReply]:
    """What the model says, turn by turn."""
    return [
        CannedReply(calls=(("c1", "orders", '{"year": 2026}'),), stop="tool_calls"),
        CannedReply(
            text="I refund it.",
            calls=(
                ("c2", "refund", '{"order": "c-7/2026", "cents": "9900"}'),
                ("c3", "note", '{"text": "kettle"}'),
            ),
            stop="tool_calls",
        ),
        CannedReply(text='{"output": {"type": "refund", "order": "kettle", "cents": 4200}}'),
        CannedReply(text='{"output": {"type": "refund", "order": "c-7/2026", "cents": 4200}}'),
    ]


@pytest.mark.parametrize("name", DIALECTS)
def test_a_refund_from_its_inputs_to_its_typed_answer(name: str, tmp_path: Path) -> None:
    """A person edits what is paid, somebody writes to the run, and the model is told why its first answer is none."""
    dialect, outside = DIALECTS[name], refunds.Outside(tmp_path)
    with Server(*(Answer(dialect.whole(reply)) for reply in _replies())) as server:
        price = runner.models.Price(input=1, output=2)
        made = refunds.agent(outside, dialect.model(server.url, prices=price))
        assert made.answers is not None
        assert made.answers.native is not None
        paused = runner.start_sync(made, refunds.TASK, runs=tmp_path / "runs", run=RUN, inputs=refunds.ADA)
        assert isinstance(paused, runner.Paused)
        (question,) = paused.questions
        assert json.loads(question.arguments) == {"order": "c-7/2026", "cents": 9900, "reason": "broken"}
        runs = tmp_path / "runs"
        runner.edit(RUN, question.id, "ada", {"order": "c-7/2026", "cents": 4_200}, runs=runs)
        runner.send(RUN, "Tell her that we are sorry.", "bob", runs=runs)
        done = runner.resume_sync(RUN, made, runs=runs).finished()
        bodies: list[Any] = [seen.json for seen in server.seen]
    assert done.output == refunds.Refund("c-7/2026", 4_200)
    assert outside.did == ["pay c-7/2026 4200 broken", outside.did[1]]
    told = [m.text for m in done.state.messages[1:] if isinstance(m, UserMessage)]
    assert told[0] == 'ada changed the arguments of call 2.0 of refund to {"order": "c-7/2026", "cents": 4200}'
    assert told[1] == "Tell her that we are sorry."
    assert "say which order" in told[2]
    assert len(told) == 3
    for body in bodies:
        text = json.dumps(body)
        assert "You serve customer c-7." in text
        assert "json_schema" in text
        assert "final_output" not in text
    assert "are left out here" in json.dumps(bodies[-1])
    assert "are left out here" not in json.dumps(bodies[0])
    results = [r.how for m in done.state.messages[:] if isinstance(m, ToolResults) for r in m.results]
    assert results == ["ran", "ran", "ran"]
    found = runner.review.retrace(RUN, made, runs=runs)
    assert (found.divergence, found.drift) == (None, ())
    exported, again = runner.review.export(RUN, made, runs=runs)
    assert again.divergence is None
    assert b"c-7/2026" in exported


def _swept(**options: Any) -> testing.SweepReport:
    return testing.sweep(
        environment=refunds.Outside,
        agent=refunds.agent,
        task=refunds.TASK,
        effects=refunds.effects,
        inputs=refunds.ADA,
        on_question=refunds.decide,
        message="She has called again.",
        **options,
    )


@pytest.mark.unmeasured
@pytest.mark.fault("a feature of typed agents loses or repeats an effect at some moment of a crash")
def test_no_crash_at_any_point_repeats_or_loses_an_effect() -> None:
    """With inputs, resources, a final tool, every decision, a rule, a lapse, a message and marks for old results."""
    report = _swept(modes=["memory"], pairs=0, every=2)
    assert report.failures == (), str(report)
    assert len(report.scenarios) > 100
    points = " ".join(report.points)
    assert "question 5.1-approve" in points
    assert "final" not in points.partition("question 5.1-approve, after")[0]
    assert "model turn 8, after" in points


@pytest.mark.full
def test_no_trouble_of_any_mode_repeats_or_loses_an_effect() -> None:
    """Every mode, with second crashes."""
    report = _swept(every=5, pairs=1, jobs=2)
    assert report.failures == (), str(report)
