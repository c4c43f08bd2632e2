"""The watcher: spans and counters of what was just saved."""

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanKind, Status, StatusCode, TracerProvider

import runner
from replay import AnyEvent, State
from replay import events as e
from replay.values import ParentCall
from runner.otel import _ids

_ORDERLY = {"Interrupted", "Parked", "StoppedByPerson", "Forked"}
"""Stops that somebody asked for: no errors."""


@dataclass
class _Life:
    """The open spans of a life in this process; `state` is as it was after the last save. `children` are by call."""

    span: Span
    trace_id: int
    number: int
    state: State | None = None
    chat: tuple[Span, datetime | None] | None = None
    attempts: dict[str, Span] = field(default_factory=dict)
    children: dict[str, Span] = field(default_factory=dict)


class Telemetry:
    """A watcher that emits spans and metrics; one serves any number of runs, in any thread.

    Args:
        tracer_provider: Where spans go; the global one by default.
        meter_provider: Where metrics go; the global one by default.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer("refold", tracer_provider=tracer_provider)
        meter = metrics.get_meter("refold", meter_provider=meter_provider)
        self._saves = meter.create_counter("refold.saves", "{save}", "Saves to the logs of runs.")
        self._attempts = meter.create_counter("refold.attempts", "{attempt}", "Ended attempts of calls, by outcome.")
        self._questions = meter.create_counter("refold.questions", "{question}", "Questions to people, by kind.")
        self._spend = meter.create_counter("refold.spend", "USD", "US dollars for replies, where a price is known.")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of a reply.")
        self._flushed = meter.create_histogram("refold.save.duration", "s", "Seconds of a save, with its flush.")
        self._took = meter.create_histogram("gen_ai.client.operation.duration", "s", "Seconds until a reply or error.")
        self._lives: dict[str, _Life] = {}

    def __call__(self, state: State, events: Sequence[AnyEvent]) -> None:
        """Emit what one save says."""
        self._saves.add(1)
        for event in events:
            self._emit(event, state)
        if state.uid in self._lives:
            self._lives[state.uid].state = state

    def timed(self, seconds: float) -> None:
        """Record how long a save took until it was durable."""
        self._flushed.record(seconds)

    def left(self, uid: str) -> None:
        """Forget a life whose log is about to be closed: one that rests ends here, one whose save failed has no end."""
        life = self._lives.get(uid)
        if life is not None and life.state is not None:
            self._ended(life, life.state, {"refold.end": "waiting"} if life.state.wait is not None else None)

    def context(self, call: ParentCall | None) -> str:
        """The W3C trace context to save with a run that begins: that of the caller, or of the call that it does."""
        span: Span | None = trace.get_current_span()
        if call is not None:
            life = self._lives.get(call.uid)
            span = life.children.get(call.call) if life is not None else None
        return "" if span is None else _ids.written(span.get_span_context())

    def within(self, call: runner.Call[Any, Any]) -> AbstractContextManager[Any]:
        """Makes the span of this attempt the current one, so that what a tool sends belongs to it.

        Args:
            call: The attempt, as the tool was given it.
        """
        spans = (life.attempts[call.key] for life in list(self._lives.values()) if call.key in life.attempts)
        return trace.use_span(next(spans, trace.INVALID_SPAN), record_exception=False, set_status_on_exception=False)

    def _life(self, state: State) -> _Life:
        """The open life of a run; it begins with the first save that is seen."""
        life = self._lives.get(state.uid)
        if life is None or life.number != state.life:  # one that a failed save ended has no end
            about: dict[str, Any] = {"gen_ai.agent.name": state.agent, "refold.uid": state.uid}
            about |= {"refold.life": state.life, **({} if state.parent is None else {"refold.parent": state.parent})}
            ids, began, within = _ids.life(state), _ids.read(state.trace), None
            here = trace.get_current_span().get_span_context()  # whoever called `start`, or `resume`
            links = {here.span_id: here} if here.is_valid else {}
            if began is not None and state.parent_call is not None:
                within = NonRecordingSpan(began)
            elif began is not None:
                links[began.span_id] = began
            given = [Link(one) for one in links.values()]
            span = self._span(state, f"invoke_agent {state.agent}", ids, about, within, links=given)
            if span.get_span_context().span_id == ids[1]:
                for one in _ids.before(state):
                    span.add_link(one)
            life = self._lives[state.uid] = _Life(span, ids[0], state.life)
        return life

    def _span(
        self, state: State, name: str, ids: tuple[int, int], about: dict[str, Any], within: Span | None, **more: Any
    ) -> Span:
        operation = name.partition(" ")[0]
        about = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": state.run, **about}
        context = trace.set_span_in_context(within or trace.INVALID_SPAN)
        token = _ids.wanted.set(ids)
        try:
            return self._tracer.start_span(name.strip(), context, attributes=about, start_time=_ns(state), **more)
        finally:
            _ids.wanted.reset(token)

    @functools.singledispatchmethod
    def _emit(self, event: Any, state: State) -> None:
        """Emit an event; other events than those below say nothing by themselves."""

    @_emit.register
    def _(self, event: e.RunStarted | e.RunResumed, state: State) -> None:  # noqa: ARG002 (its class is all it says)
        self._life(state)

    @_emit.register
    def _(self, event: e.ModelAsked, state: State) -> None:
        life = self._life(state)
        ids = (life.trace_id, _ids.made(8, state.uid, "chat", state.turns + 1, event.purpose, event.n))
        about = {"refold.turn": state.turns + 1, "refold.purpose": event.purpose, "refold.ask": event.n}
        life.chat = (self._span(state, "chat", ids, about, life.span, kind=SpanKind.CLIENT), state.at)

    @_emit.register
    def _(self, event: e.ReplySaved, state: State) -> None:
        reply, used = event.reply, event.reply.usage
        about = {"gen_ai.operation.name": "chat", **({"gen_ai.response.model": reply.model} if reply.model else {})}
        for kind, count in (("input", used.input_tokens), ("output", used.output_tokens)):
            self._tokens.record(count, {**about, "gen_ai.token.type": kind})
        if reply.dollars is not None:
            self._spend.add(reply.dollars, about)
        more = {
            "gen_ai.response.finish_reasons": [reply.stop],
            "gen_ai.usage.input_tokens": used.input_tokens,
            "gen_ai.usage.output_tokens": used.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": used.cache_read_tokens,
            "gen_ai.usage.cache_write.input_tokens": used.cache_write_tokens,
        }
        self._answered(state, about, more)

    @_emit.register
    def _(self, event: e.ModelFailed, state: State) -> None:
        self._answered(state, {"gen_ai.operation.name": "chat", "error.type": event.error_type or "_OTHER"}, {})

    def _answered(self, state: State, about: dict[str, Any], more: dict[str, Any]) -> None:
        """A request to the model is over: its span ends, and how long it took is recorded."""
        life = self._life(state)
        if life.chat is None:
            return
        (span, began), life.chat = life.chat, None
        if began is not None and state.at is not None:
            self._took.record((state.at - began).total_seconds(), about)
        span.update_name(f"chat {about.get('gen_ai.response.model', '')}".strip())
        _end(span, state, {**about, **more})

    @_emit.register
    def _(self, event: e.AttemptMarked, state: State) -> None:
        life, call = self._life(state), state.find(event.call)
        about = {"gen_ai.tool.type": "function", "gen_ai.tool.call.id": event.call, "refold.attempt": event.n}
        about |= {"refold.key": event.key, "refold.effect": event.effect, **_rung(life.state, event)}
        tool = call.call.tool if call is not None else ""
        ids = (life.trace_id, _ids.made(8, state.uid, "call", event.call, event.n))
        about["gen_ai.tool.name"] = tool
        life.attempts[event.key] = self._span(state, f"execute_tool {tool}", ids, about, life.span)

    @_emit.register
    def _(self, event: e.ChildStarted, state: State) -> None:
        """A child run does the call; in each life of it that carries the child on, the call has a span."""
        life, call = self._life(state), state.find(event.call)
        about: dict[str, Any] = {"gen_ai.tool.type": "agent", "gen_ai.tool.call.id": event.call}
        about |= {"refold.child": event.run, "gen_ai.tool.name": call.call.tool if call is not None else ""}
        ids = (life.trace_id, _ids.made(8, state.uid, "call", event.call, "life", state.life))
        name = f"execute_tool {about['gen_ai.tool.name']}"
        life.children[event.call] = self._span(state, name, ids, about, life.span)

    @_emit.register
    def _(self, event: e.ChildRested, state: State) -> None:
        span = self._life(state).children.pop(event.call, None)
        if span is not None:
            _end(span, state, {"refold.outcome": "ran" if event.phase == "done" else "rests"})

    @_emit.register
    def _(self, event: e.AttemptEnded | e.ResultRecorded, state: State) -> None:
        """An attempt is over. One that another process began has no span here; a result may come from no attempt."""
        call = state.find(event.call)
        if call is None or not call.attempts or (isinstance(event, e.ResultRecorded) and event.how != "ran"):
            return
        last, about = call.attempts[-1], {"refold.outcome": "ran"}
        if isinstance(event, e.AttemptEnded):
            about = {"refold.outcome": event.did, "error.type": event.error_type or "_OTHER"}
        self._attempts.add(1, {"gen_ai.tool.name": call.call.tool, "refold.effect": last.effect, **about})
        span = self._life(state).attempts.pop(last.key, None)
        if span is not None:
            _end(span, state, about)

    @_emit.register
    def _(self, event: e.QuestionAsked, state: State) -> None:
        about = {"refold.question.kind": event.kind, "gen_ai.tool.name": event.tool}
        self._questions.add(1, about)
        self._life(state).span.add_event("refold.question", {**about, "refold.question.id": event.id}, _ns(state))

    @_emit.register
    def _(self, event: e.PhaseChanged | e.RunStopped, state: State) -> None:
        """The life ends when the run is done, pauses or stops."""
        end = event.reason if isinstance(event, e.RunStopped) else event.phase
        if end == "tools":
            return
        failed = isinstance(event, e.RunStopped) and end not in _ORDERLY
        self._ended(self._life(state), state, {"refold.end": end, **({"error.type": end} if failed else {})})

    def _ended(self, life: _Life, state: State, about: dict[str, Any] | None) -> None:
        """Forget a life; without `about` its spans are never exported."""
        del self._lives[state.uid]
        if about is not None:
            for span in life.children.values():
                _end(span, state, {"refold.outcome": "rests"})
            _end(life.span, state, {**about, "refold.turns": state.turns})


def _ns(state: State) -> int | None:
    """The log's time of the last save, in nanoseconds; the log has microseconds."""
    return None if state.at is None else round(state.at.timestamp() * 1e6) * 1000


def _end(span: Span, state: State, about: dict[str, Any]) -> None:
    span.set_attributes(about)
    if "error.type" in about:
        span.set_status(Status(StatusCode.ERROR))
    span.end(_ns(state))


def _rung(before: State | None, event: e.AttemptMarked) -> dict[str, str]:
    """Why the attempt was made; of one that a resume makes in its very first save that is not known here."""
    call = before.find(event.call) if before is not None else None
    if event.n == 1:
        return {"refold.rung": "first"}
    return {} if call is None else {"refold.rung": call.cleared or ("harmless" if call.in_doubt else "nothing")}
