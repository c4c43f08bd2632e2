"""Runs as spans and metrics: each life, request and attempt once, under ids that every process makes alike."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import runner
import runner.testing
from runner import otel
from runner.otel import _ids
from tests.cli import agents, scenes


class Seen:
    """A program's OpenTelemetry, in memory."""

    def __init__(self, ids: otel.Ids | None) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider(id_generator=ids)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer, self.meter = provider, MeterProvider([self.reader])
        self.telemetry = otel.Telemetry(tracer_provider=provider, meter_provider=self.meter)

    def spans(self) -> dict[str, ReadableSpan]:
        """What was exported, by its name and the number of the attempt or the turn."""
        return {f"{span.name} {_number(span)}".strip(): span for span in self.exporter.get_finished_spans()}

    def points(self, name: str) -> dict[str, Any]:
        """The points of a metric: what distinguishes each, and its value or its sum."""
        data: Any = self.reader.get_metrics_data()
        found: dict[str, Any] = {}
        for metric in (m for r in data.resource_metrics for scope in r.scope_metrics for m in scope.metrics):
            for point in metric.data.data_points if metric.name == name else ():
                key = " ".join(map(str, point.attributes.values()))
                found[key] = point.value if hasattr(point, "value") else point.sum
        return found


def about(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def _number(span: ReadableSpan) -> Any:
    return about(span).get("refold.attempt") or about(span).get("refold.turn") or ""


@pytest.fixture
def seen() -> Seen:
    """With refold's ids."""
    return Seen(otel.Ids())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs."""
    return tmp_path / "runs"


def test_a_run_is_one_trace_of_its_life_its_requests_and_its_attempts(seen: Seen, runs: Path) -> None:
    """With the names of the conventions, and no text of anybody."""
    with seen.tracer.get_tracer("caller").start_as_current_span("request") as caller:
        runner.start_sync(agents.plain, "a secret task", runs=runs, run="r", watch=seen.telemetry)
    spans = seen.spans()
    assert set(spans) == {"invoke_agent plain", "chat 1", "chat 2", "execute_tool look 1", "request"}
    life, chat, tool = (spans[name] for name in ("invoke_agent plain", "chat 1", "execute_tool look 1"))
    assert life.parent is None
    assert [link.context.span_id for link in life.links] == [caller.get_span_context().span_id]
    assert {span.parent.span_id for span in (chat, tool) if span.parent} == {life.context.span_id}
    assert {span.context.trace_id for span in (life, chat, tool)} == {life.context.trace_id}
    assert (chat.kind, tool.kind) == (trace.SpanKind.CLIENT, trace.SpanKind.INTERNAL)
    uid = runner.read_state("r", runs).uid
    assert about(tool) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "r",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "1.0",
        "refold.attempt": 1,
        "refold.key": runner.key(uid, "1.0"),
        "refold.effect": "reads",
        "refold.rung": "first",
        "refold.outcome": "ran",
    }
    assert about(chat)["gen_ai.usage.input_tokens"] > 0
    assert about(life)["refold.end"] == "done"
    assert not any("secret" in str(about(span)) for span in spans.values())
    assert life.start_time <= chat.start_time <= chat.end_time <= life.end_time  # type: ignore[operator] # all have ended
    assert seen.points("refold.saves") == {"": runner.read_state("r", runs).seq}
    assert seen.points("refold.attempts") == {"look reads ran": 1}
    assert seen.points("refold.save.duration")[""] > 0
    assert sum(seen.points("gen_ai.client.token.usage").values()) > 0


@pytest.mark.fault("a process that died, in a trace")
def test_a_resume_emits_its_own_life_alone_linked_to_the_one_before(seen: Seen, runs: Path) -> None:
    """What the log tells was emitted before, or never ended: neither comes a second time."""
    run = scenes.killed(runs, "stumbling", "stumbled")
    runner.resume_sync(run, agents.stumbling, runs=runs, watch=seen.telemetry)
    spans = seen.spans()
    assert set(spans) == {"invoke_agent stumbling", "execute_tool stumble 2", "chat 2"}
    life = spans["invoke_agent stumbling"]
    again = Seen(otel.Ids())
    runner.start_sync(agents.plain, "x", runs=runs, run="other", watch=again.telemetry)
    assert again.spans()["invoke_agent plain"].context.trace_id != life.context.trace_id
    (link,) = life.links
    assert link.context.trace_id == life.context.trace_id
    ids = [_ids.made(size, runner.read_state(run, runs).uid, *more) for size, *more in ((16,), (8, "life", 1))]
    assert [link.context.trace_id, link.context.span_id] == ids
    seen.exporter.clear()
    runner.resume_sync(run, agents.stumbling, runs=runs, watch=seen.telemetry)
    assert seen.spans() == {}, "a finished run hands back its answer"


def test_without_refolds_ids_each_life_is_a_trace_of_its_own(runs: Path) -> None:
    """A provider whose ids are random: a link to the life before would lead nowhere."""
    seen = Seen(None)
    run = scenes.killed(runs, "stumbling", "stumbled")
    runner.resume_sync(run, agents.stumbling, runs=runs, watch=seen.telemetry)
    assert seen.spans()["invoke_agent stumbling"].links == ()


def test_what_a_tool_sends_belongs_to_its_attempt_and_a_failed_one_says_what_it_raised(seen: Seen, runs: Path) -> None:
    """The second attempt says why it was made; the question that follows is counted."""

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), attempts=2)
    def send(call: runner.Call) -> str:
        with seen.telemetry.within(call), seen.tracer.get_tracer("client").start_as_current_span(f"POST {call.n}"):
            raise runner.ToolFailed("no route", retry_after=0.01)

    model = runner.testing.ScriptedModel([runner.testing.tool_calls(("send", {})), "Not sent."])
    agent = runner.Agent(name="a", model=model, tools=[send])
    runner.start_sync(agent, "x", runs=runs, watch=seen.telemetry)
    spans = seen.spans()
    first, second = spans["execute_tool send 1"], spans["execute_tool send 2"]
    for span, post in ((first, spans["POST 1"]), (second, spans["POST 2"])):
        assert post.parent is not None
        assert post.parent.span_id == span.context.span_id
        assert not span.status.is_ok
        assert about(span)["error.type"] == "ToolFailed"
    assert (about(first)["refold.rung"], about(second)["refold.rung"]) == ("first", "nothing")
    assert seen.points("refold.attempts") == {"send keyed nothing ToolFailed": 2}


def test_a_model_that_fails_and_a_run_that_stops_are_errors_and_a_pause_is_none(seen: Seen, runs: Path) -> None:
    """By the class that was raised, and by the reason of the stop."""
    with pytest.raises(runner.errors.ModelUnavailable):
        runner.start_sync(agents.silent, "x", runs=runs, watch=seen.telemetry)
    spans = seen.spans()
    assert about(spans["chat 1"])["error.type"] == "ModelError"
    assert about(spans["invoke_agent silent"])["error.type"] == "ModelUnavailable"
    runner.start_sync(agents.paying, "x", runs=runs, run="asking", watch=seen.telemetry)
    paused = seen.spans()["invoke_agent paying"]
    assert (about(paused)["refold.end"], paused.status.is_ok) == ("paused", True)
    assert [event.name for event in paused.events] == ["refold.question"]
    assert seen.points("refold.questions") == {"approve pay": 1}
    otel.observe(runs, meter_provider=seen.meter)
    assert seen.points("refold.runs") == {"model": 1, "paused": 1}
    assert seen.points("refold.questions.open") == {"": 1}
    assert 0 <= seen.points("refold.questions.oldest")[""] < 60


def test_a_life_that_rests_for_a_wait_ends_then(seen: Seen, runs: Path) -> None:
    """No event says that a process gave the run back; another one may carry it on."""
    model = runner.testing.ScriptedModel([runner.ModelError("busy", retry_after=3600), "over"])
    agent = runner.Agent(name="a", model=model)
    runner.enqueue(agent, "x", runs=runs, run="r")
    for _ in range(2):
        assert isinstance(
            runner.resume_sync("r", agent, runs=runs, watch=seen.telemetry, wait="return"), runner.Waiting
        )
    (life,) = [span for span in seen.exporter.get_finished_spans() if span.name == "invoke_agent a"]
    assert about(life)["refold.end"] == "waiting"


def test_the_lives_of_a_run_in_one_process_are_spans_of_one_trace(seen: Seen, runs: Path) -> None:
    """A worker carries a run on again and again; each life begins and ends once."""
    runner.start_sync(agents.paying, "x", runs=runs, run="asking", watch=seen.telemetry)
    runner.approve("asking", "1.0-approve", "ann", runs=runs)
    runner.resume_sync("asking", agents.paying, runs=runs, watch=seen.telemetry)
    lives = [span for span in seen.exporter.get_finished_spans() if span.name == "invoke_agent paying"]
    assert [about(life)["refold.end"] for life in lives] == ["paused", "done"]
    assert lives[0].context.trace_id == lives[1].context.trace_id
    assert lives[0].context.span_id != lives[1].context.span_id
