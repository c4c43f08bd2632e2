"""How events about the run itself change its state: lives, limits, the workspace's acceptance, phases, stops.

A new life is the only place where *in flight* becomes *open*: the process that was acting is gone, and nobody knows
what its last calls did. An ask it had sent and not saved is lost, and its bound counts as spent (spec row 3).
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from msgspec.structs import replace

from replay import _events as e
from replay._digest import conversation
from replay._history import History
from replay._messages import Message, Said
from replay._rules import require
from replay._state import Ask, Attempt, CallState, Failures, Question, Spent, State, Stopped, Wait
from replay._values import Phase


class Told(TypedDict):
    """The fields of a state that a message changes."""

    messages: History[Message]
    conversation: str


def told(state: State, message: Message) -> Told:
    """What one more message changes, for a caller that changes more at once."""
    return Told(
        messages=state.messages.append(message),
        conversation=conversation(state.conversation, message),
    )


def say(state: State, message: Message) -> State:
    """The state with one more message."""
    return replace(state, **told(state, message))


def started(state: State, event: e.RunStarted, at: datetime) -> State:
    """The run begins: what an earlier one said (if this continues it), then the task."""
    state = replace(
        state,
        run=event.run,
        agent=event.agent,
        task=event.task,
        workspace=event.workspace,
        after=event.after,
        approve=event.approve,
        limits=event.limits,
        definitions=event.definitions,
        phase="model",
    )
    for message in event.history:
        state = say(state, message)
    return say(state, Said(event.task))


def lose(spent: Spent, ask: Ask | None) -> Spent:
    """What is spent when the reply to `ask` never comes."""
    if ask is None:
        return spent
    return replace(
        spent,
        lost_input_tokens=spent.lost_input_tokens + ask.bound.input_tokens,
        lost_output_tokens=spent.lost_output_tokens + ask.bound.output_tokens,
        lost_dollars=spent.lost_dollars + (ask.bound.dollars or 0.0),
        lost_asks=spent.lost_asks + 1,
        unpriced=spent.unpriced + (ask.bound.dollars is None),
    )


def _reopen(call: CallState, at: datetime, *, clock_back: bool) -> CallState:
    """What a new life knows of a call: an attempt that ran is open, an unanswered lookup was never answered."""

    def after(attempt: Attempt) -> Attempt:
        if attempt.did == "in flight":
            attempt = replace(attempt, did="unknown", died=True, ended=at)
        return replace(attempt, expired=True) if clock_back else attempt

    if call.result is not None:
        return call
    return replace(
        call, attempts=tuple(after(a) for a in call.attempts), lookups=replace(call.lookups, in_flight=False)
    )


def _new_life(state: State, at: datetime, *, clock_back: bool) -> State:
    failures = Failures() if state.stopped is not None else state.failures
    return replace(
        state,
        stopped=None,
        failures=failures,
        ask=None,
        spent=lose(state.spent, state.ask),
        calls=tuple(_reopen(c, at, clock_back=clock_back) for c in state.calls),
    )


def resumed(state: State, event: e.RunResumed, at: datetime) -> State:
    """A new life: counted unless it uses up a person's answer (spec row 4)."""
    require(state.stopped is None or not state.stopped.final, "the run was stopped for good")
    require(event.counted or state.answered, "only the first resume after an answer is not counted")
    return replace(
        _new_life(state, at, clock_back=event.clock_back),
        resumes=state.resumes + event.counted,
        answered=False,
        definitions=event.definitions,
    )


def forked(state: State, event: e.RunForked, at: datetime) -> State:
    """Another run from here on. Answers given in the parent stay; its unanswered questions are asked anew."""
    open_questions = {q.id for q in state.waiting}
    questions: dict[str, Question] = {k: q for k, q in state.questions.items() if k not in open_questions}
    state = _new_life(state, at, clock_back=False)
    return replace(
        state,
        run=event.run,
        parent=event.parent,
        phase=_forked_phase(state),
        resumes=0,
        answered=False,
        fence=state.fence + event.fence,
        questions=questions,
    )


def _forked_phase(state: State) -> Phase:
    """A fork moves on from where its parent stood: a pause ends with its questions, an answer is given again."""
    if state.phase == "done":
        return "model"
    return "tools" if state.phase == "paused" else state.phase


def limits_changed(state: State, event: e.LimitsChanged, at: datetime) -> State:
    """Today's limits win."""
    return replace(state, limits=event.limits)


def accepted(state: State, event: e.WorkspaceAccepted, at: datetime) -> State:
    """The accepted contents become the explained ones, and the model is told at the next ask."""
    files = state.files | {f.path: (f.sha256,) for f in event.files}
    names = ", ".join(f.path for f in event.files)
    note = f"Files were changed from outside and {event.by} accepted them as they are now: {names}. Read them again."
    state = replace(state, files=files)
    if state.phase == "model":
        return say(state, Said(note))
    return replace(state, notes=(*state.notes, note))


def waited(state: State, event: e.WaitUntil, at: datetime) -> State:
    """Nothing is due before `until`."""
    require(not state.busy, "something is in flight")
    return replace(state, wait=Wait(until=event.until, why=event.why, call=event.call))


def phase_changed(state: State, event: e.PhaseChanged, at: datetime) -> State:
    """Done, paused, or on again: checked against the state, never trusted."""
    require(not state.busy, "something is in flight")
    if event.phase == "done":
        require(state.phase == "model" and state.stop is not None, "the last message is not a final reply")
        require(event.answer == state.answer, "the answer is not the last reply's text")
        return replace(state, phase="done", wait=None)
    if event.phase == "paused":
        require(state.phase == "tools" and state.waiting, "no question is open")
        return replace(state, phase="paused", wait=None)
    require(state.phase == "paused" and not state.waiting, "a question is still open")
    return replace(state, phase="tools", answered=False, wait=None)


def stopped(state: State, event: e.RunStopped, at: datetime) -> State:
    """The run stops, beside its phase. What is in flight stays so until a new life calls it open."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    return replace(state, stopped=Stopped(reason=event.reason, final=event.final, detail=event.detail), wait=None)
