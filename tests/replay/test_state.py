"""Nothing that an event says is forgotten: each part of each event moves the state, or is named here with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import inspect
from msgspec.structs import replace

import replay
from replay import State
from replay.events import ReplySaved, UnknownEvent
from replay.messages import Reply, ToolCall
from tests.replay.positions import ASKING, POSITIONS, SUMMARY, Position, after
from tests.replay.values import parts
from tests.support.story import BEGIN

pytestmark = [pytest.mark.fault("a field that a resume loses")]

AUDIT_ONLY = {
    "run_started host": "who wrote the line; decisions never depend on the machine",
    "run_started pid": "as host",
    "run_resumed host": "as host",
    "run_resumed pid": "as host",
    "run_forked host": "as host",
    "workspace_moved by": "who said so; the place is what matters",
    "run_forked pid": "as host",
    "run_forked messages": "for people: they came to the parent, and this run does not take them",
    "run_forked messages.id": "as messages",
    "run_forked messages.who": "as messages",
    "run_forked messages.text": "as messages",
    "run_forked seq": "where in the parent the fork began; the lines before it are this log's own",
    "model_asked digests.instructions": "a retrace compares requests by it; requests are not stored",
    "model_asked digests.tools": "as instructions",
    "model_asked digests.messages": "as instructions",
    "model_asked digests.parameters": "as instructions",
    "model_failed error_type": "for people and middlewares; whether to ask again is said by transient",
    "result_recorded raw": "a program that runs again is handed it from the log",
    "step_recorded name": "as raw of a result",
    "step_recorded n": "as raw of a result",
    "step_recorded raw": "as raw of a result",
    "step_recorded error": "as raw of a result",
    "step_recorded error_type": "as error",
    "step_recorded branch": "as raw of a result",
    "result_recorded first": "the text names the first call to the model",
}
RESULT = next(p for p in POSITIONS if replay.tag(p.event) == "result_recorded")
LOSSY = Position(RESULT.state, replace(RESULT.event, lossy=True))
SUMMARY_ONLY = {
    "reply.calls": "a summary's request shows no tools, so nothing could answer them",
    "reply.calls.tool": "as calls",
    "reply.calls.arguments": "as calls",
    "reply.calls.provider_id": "as calls",
    "reply.calls.id": "as calls",
    "reply.usage.cache_read_tokens": "they are part of input_tokens, which limits are compared with",
    "reply.usage.cache_write_tokens": "as cache_read_tokens",
    "reply.stop": "a summary ends nothing",
    "reply.model": "a summary is sent as its text alone, whoever wrote it",
    "reply.raw": "as model",
    "reply.lossy": "as model",
}


def noticed(position: Position) -> Iterator[tuple[str, bool]]:
    """Each part of the event, and whether the fold did anything else when it was changed."""
    taken = replay.step(position.state, position.event, BEGIN)
    for path, other in parts(position.event):
        try:
            yield path, replay.step(position.state, other, BEGIN) != taken
        except replay.IllegalEvent:
            yield path, True


def test_each_part_of_each_event_moves_the_state_or_is_named_as_audit_only() -> None:
    """A field that is added to an event and forgotten by the fold would be lost at every resume."""
    moves: dict[str, bool] = {}
    for position in POSITIONS:
        for path, moved in noticed(position):
            name = f"{replay.tag(position.event)} {path}"
            moves[name] = moves.get(name, False) or moved
    assert {name for name, moved in moves.items() if not moved} == set(AUDIT_ONLY)


def test_a_summarys_text_and_cost_move_the_state_and_the_rest_of_it_is_named() -> None:
    """A summary stands for messages: its text is state, its price is spent."""
    summary = Position(after(SUMMARY), ReplySaved(reply=Reply(text="t", calls=(ToolCall(tool="x"),))))
    moves: dict[str, bool] = {}
    for path, moved in noticed(summary):
        moves[path] = moves.get(path, False) or moved
    assert {path for path, moved in moves.items() if not moved} == set(SUMMARY_ONLY)
    assert {path for path, moved in moves.items() if moved} == {
        "reply.text", "reply.dollars", "reply.usage.input_tokens", "reply.usage.output_tokens"
    }  # fmt: skip


@pytest.mark.parametrize("field", [f.name for f in inspect.type_info(State).fields])  # type: ignore[attr-defined] # a struct
def test_each_part_of_the_state_is_told_by_some_event(field: str) -> None:
    """A part that nothing moves is not state: it can be dropped, or its event was forgotten."""
    if field in {"seq", "life", "at"}:
        loaded = after(*ASKING)
        assert getattr(loaded, field) != getattr(replay.NEW, field), "a line tells these, not an event"
        return
    unknown = Position(replay.NEW, UnknownEvent("later", b"{}", ignorable=False))  # type: ignore[arg-type] # of later
    accepted = next(p for p in POSITIONS if replay.tag(p.event) == "workspace_accepted" and p.state.phase == "tools")
    summary = Position(after(SUMMARY), ReplySaved(reply=Reply(text="t")))
    for state, event in (*POSITIONS, unknown, accepted, summary, LOSSY):
        if getattr(replay.step(state, event, BEGIN), field) != getattr(state, field):
            return
    pytest.fail(f"no event moves {field}")
