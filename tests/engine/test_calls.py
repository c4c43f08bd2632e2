"""What a model may write as a call: each gets one result, and nothing runs twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.events import AttemptMarked, ModelAsked, ReplySaved
from replay.messages import AssistantMessage, Reply, ToolCall, ToolResults
from tests.support import stage


class Counter:
    """A tool that counts what it was called with."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

        @runner.tool
        def act(call: runner.Call, x: Any = None) -> str:
            self.seen.append((call.id, x))
            return f"{call.id} {call.key}"

        self.tool = act


def reply(*calls: ToolCall, **options: Any) -> Reply:
    """A reply that makes calls."""
    return Reply(calls=calls, stop="tool_calls", **options)


@pytest.mark.fault("repeated or blank call ids")
@pytest.mark.parametrize("provider_id", ["", "same", "1.0", "\ud800", "x" * 5000])
def test_calls_with_one_provider_id_are_different_calls(runs: Path, provider_id: str) -> None:
    """Repeated in a reply and in every turn, blank, or ours: each call runs once under its own key."""
    counter = Counter()
    two = reply(*[ToolCall(tool="act", provider_id=provider_id)] * 2)
    assert stage.finished(stage.start([two, two, two, "over"], counter.tool, runs=runs)) == "over"
    ids = [f"{turn}.{index}" for turn in (1, 2, 3) for index in (0, 1)]
    assert [call for call, _ in counter.seen] == ids
    assert {result.text for result in stage.results(runs).values()} == {f"{c} {stage.key(runs, c)}" for c in ids}
    answered = [m for m in runner.read_state("r", runs).messages if isinstance(m, ToolResults)]
    assert len(answered) == 3
    if len(provider_id) < 100 and provider_id.isascii():
        assert {result.provider_id for message in answered for result in message.results} == {provider_id}


INVALID = [
    "{",
    "[]",
    "null",
    '"x"',
    "7",
    '{"x": 1',
    '{"x": 1} and more',
    '{"x": 1, "x": 2}',
    '{"x": NaN}',
    '{"x": Infinity}',
    '{"unknown": 1}',
    '{"x": "' + "a" * (2 << 20) + '"}',
    "{" * 100_000,
    '{"x": ' + "[" * 80 + "]" * 80 + "}",
    "not json at all",
    "\ud800",
    '{"\\ud800": 1}',
    '{"x": ' + "9" * 5000 + "}",
]


@pytest.mark.fault("unusable arguments")
@pytest.mark.parametrize("arguments", INVALID, ids=range(len(INVALID)))
def test_arguments_that_cannot_be_used_are_a_result_and_no_attempt(runs: Path, arguments: str) -> None:
    """The model reads what is wrong with them and goes on."""
    counter = Counter()
    script = [reply(ToolCall(tool="act", arguments=arguments)), runner.testing.tool_calls(("act", {"x": 1})), "over"]
    assert stage.finished(stage.start(script, counter.tool, runs=runs)) == "over"
    results = stage.results(runs)
    assert [results["1.0"].how, results["2.0"].how] == ["invalid", "ran"]
    assert len(results["1.0"].text) < 10_000
    assert counter.seen == [("2.0", 1)]
    assert [marked.call for marked in stage.events(runs, AttemptMarked)] == ["2.0"]


@pytest.mark.fault("unusable arguments")
@pytest.mark.parametrize(
    "arguments", ['{"x": 1', '{"x":1,  "x":2}', "\u2028 \r \u0085 \0 é \U0001f600", '{"\\ud800": 1}']
)
def test_raw_arguments_survive_byte_for_byte(runs: Path, arguments: str) -> None:
    """What goes back to the provider is what it sent."""
    stage.start([reply(ToolCall(tool="act", arguments=arguments)), "over"], Counter().tool, runs=runs)
    (saved, _) = stage.events(runs, ReplySaved)
    assert saved.reply.calls[0].arguments == arguments
    assert not saved.reply.lossy
    message = runner.read_state("r", runs).messages[1]
    assert isinstance(message, AssistantMessage)
    assert message.reply.calls[0].arguments == arguments


@pytest.mark.fault("unusable arguments")
def test_only_what_utf8_cannot_hold_is_replaced_and_marked(runs: Path) -> None:
    """A lone surrogate, in any text of a reply, before anybody sees it."""
    script = [
        reply(ToolCall(tool="act\ud800", arguments='{"x": "\ud800"}'), text="\ud800", model="\ud800", raw="{\ud800}"),
        "\ud800",
    ]
    assert stage.finished(stage.start(script, Counter().tool, runs=runs)) == "\ufffd"
    (saved, last) = stage.events(runs, ReplySaved)
    assert saved.reply.lossy
    assert last.reply.lossy
    assert saved.reply.calls[0].tool == "act\ufffd"
    assert saved.reply.calls[0].arguments == '{"x": "\ufffd"}'


@pytest.mark.fault("unusable arguments")
@pytest.mark.parametrize("name", ["nothing", "", "Act", "a" * 5000])
def test_an_unknown_tool_is_a_result_that_names_those_there_are(runs: Path, name: str) -> None:
    """The model reads what was wrong; nothing was tried."""
    counter = Counter()
    assert stage.finished(stage.start([reply(ToolCall(tool=name)), "over"], counter.tool, runs=runs)) == "over"
    result = stage.results(runs)["1.0"]
    assert (result.how, counter.seen) == ("invalid", [])
    assert "act" in result.text


@pytest.mark.fault("unusable arguments")
def test_a_tool_removed_since_is_unknown_too(runs: Path) -> None:
    """The reply was saved under yesterday's code, and is neither paid again nor stuck."""
    ask = runner.tool(approval=True, name="act")(lambda: "never")
    stage.asked(stage.start([reply(ToolCall(tool="act")), "over"], ask, runs=runs))
    runner.approve("r", "1.0-approve", "olga", runs=runs)
    assert stage.finished(runner.resume_sync("r", stage.agent([None, "over"]), runs=runs)) == "over"
    assert stage.results(runs)["1.0"].how == "invalid"


@pytest.mark.parametrize("stop", ["stop", "refusal"])
def test_a_reply_without_calls_ends_the_run(runs: Path, stop: Any) -> None:
    """Whatever made it stop; the log says which."""
    assert stage.finished(stage.start([Reply(text="so far", stop=stop)], runs=runs)) == "so far"
    assert runner.read_state("r", runs).stop == stop


@pytest.mark.fault("unstorable content")
def test_very_many_and_very_large_calls_fit_into_the_log(runs: Path) -> None:
    """No content of a model can make a save fail. What had to be cut is invalid, and the model reads so."""
    counter = Counter()
    large = ToolCall(tool="act", arguments='{"x": "' + "a" * (1 << 20) + '"}')
    many = reply(*[ToolCall(tool="act", arguments='{"x": 1}')] * 60)
    script = [reply(*[large] * 20), many, "over"]
    assert stage.finished(stage.start(script, counter.tool, runs=runs)) == "over"
    hows = [result.how for result in stage.results(runs).values()]
    assert hows == ["invalid"] * 20 + ["ran"] * 60
    assert stage.events(runs, ReplySaved)[0].reply.lossy


@pytest.mark.fault("unstorable content")
def test_a_reply_too_large_for_a_line_stops_the_run_with_a_sentence(runs: Path) -> None:
    """Nothing of it ran, and it is not asked for again and again."""
    huge = reply(*[ToolCall(tool="a" * 2000, provider_id="b" * 2000)] * 9000)
    with pytest.raises(runner.errors.ModelUnavailable, match="line"):
        stage.start([huge], Counter().tool, runs=runs)
    assert len(stage.events(runs, ModelAsked)) == 1
