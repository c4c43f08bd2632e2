"""Servers that refuse on the next request what they sent themselves: the conversation is sent once more, rebuilt."""

import json
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from replay.events import ModelAsked, ModelFailed
from tests.models import cases
from tests.models.dialects import DIALECTS, CannedReply
from tests.models.server import Answer, Server

TWICE = CannedReply("Paying.", "", (("c1", "pay", '{"cents": 5}'), ("c1", "pay", '{"cents": 7}')), "tool_calls")
MORE = CannedReply("Again.", "", (("c2", "pay", '{"cents": 9}'),), "tool_calls")
LAST = CannedReply(text="Done.")
REFUSES = Answer(b'{"error":{"type":"invalid_request_error","message":"messages: duplicate tool_call id c1"}}', 400)


@pytest.mark.fault("conversation refused")
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_a_conversation_that_its_own_server_refuses_is_rebuilt_once_and_for_all(
    name: str, streamed: bool, tmp_path: Path
) -> None:
    """The faithful copy is tried first, and later asks do not pay for its refusal again."""
    dialect = DIALECTS[name]
    answers = cases.answers(dialect, [TWICE, REFUSES, MORE, LAST], streamed=streamed)
    with Server(*answers) as server:
        came = cases.start(cases.model(dialect, server.url, streamed=streamed), tmp_path)
        bodies = [seen.body.decode() for seen in server.seen]
    assert came.answer == "Done."
    assert len(bodies) == 4
    for index, body in enumerate(bodies):
        rebuilt = index >= 2
        assert ('"c1"' in body) is (index == 1)
        assert ("call_1_0" in body and "call_1_1" in body) is rebuilt
        json.loads(body)
    assert '"c2"' in bodies[3], "what came after the refusal goes back as it came"
    assert [failed.refused_conversation for failed in cases.events(tmp_path, ModelFailed)] == [True]
    assert [asked.rebuilt_upto > 0 for asked in cases.events(tmp_path, ModelAsked)] == [False, False, True, True]
    kinds = [finding.kind for finding in replay.audit(eventlog.Directory(tmp_path / "runs").read("r").lines).findings]
    assert kinds.count("conversation-rebuilt") == 1


@pytest.mark.fault("conversation refused")
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_a_run_that_continues_one_whose_conversation_was_refused_begins_with_it_rebuilt(
    name: str, streamed: bool, tmp_path: Path
) -> None:
    """The refusal was paid for once; it is not asked for again, in this run or the next."""
    dialect = DIALECTS[name]
    answers = cases.answers(dialect, [TWICE, REFUSES, LAST, LAST, TWICE, REFUSES, LAST], streamed=streamed)
    with Server(*answers) as server:
        model = cases.model(dialect, server.url, streamed=streamed)
        cases.start(model, tmp_path)
        came = cases.start(model, tmp_path, run="s", after="r")
        again = cases.start(model, tmp_path, run="t", after="s")
        bodies = [seen.body.decode() for seen in server.seen]
    assert (came.answer, again.answer, len(bodies)) == ("Done.", "Done.", 7)
    assert ['"c1"' in body for body in bodies] == [False, True, False, False, False, True, False]
    assert "call_1_0" in bodies[3]


@pytest.mark.fault("conversation refused")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_conversation_that_is_refused_rebuilt_too_names_the_ways_on(name: str, tmp_path: Path) -> None:
    """Another model, a fork before the line, a summary."""
    dialect = DIALECTS[name]
    answers = cases.answers(dialect, [TWICE, REFUSES, REFUSES], streamed=False)
    with Server(*answers) as server, pytest.raises(runner.errors.ConversationRefused) as stopped:
        cases.start(cases.model(dialect, server.url, streamed=False), tmp_path)
    assert "duplicate tool_call id c1" in str(stopped.value)
    assert "another model" in stopped.value.hint
    assert replay.tag(cases.events(tmp_path, replay.Event)[-1]) == "run_stopped"


@pytest.mark.fault("conversation refused")
@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("messages.1.content: text content blocks must be non-empty", True),
        (
            "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
            True,
        ),
        ("could not parse the arguments of call_1", True),
        ("Invalid JSON", True),
        ("tools.0.function.parameters: invalid schema", False),
        ("The model `gpt-9` does not exist", False),
        ("Unsupported parameter: temperature", False),
        ("This model's maximum context length is 8192 tokens; your messages are too long", False),
        ("Your credit balance is too low", False),
    ],
)
def test_a_refusal_that_names_something_else_is_not_the_conversation_s(
    words: str, refused: bool, tmp_path: Path
) -> None:
    """Rebuilding helps against neither a schema nor a limit."""
    body = json.dumps({"error": {"type": "invalid_request_error", "message": words}}).encode()
    for status in (400, 422, 404):
        with Server(Answer(body, status)) as server, pytest.raises(runner.Stopped):
            cases.start(cases.model(DIALECTS["chat"], server.url, streamed=False), tmp_path / str(status))
        (failed,) = cases.events(tmp_path / str(status), ModelFailed)
        assert failed.refused_conversation is (refused and status != 404)
