"""What events about the run itself do to its state: lives, limits, accepted files, phases, stops.

Only a new life turns *in flight* into *in doubt*: the process that was acting is gone, and nobody knows what its last
calls did. A request that it had sent is lost if its reply was not saved, and its bound counts as spent.
"""

from datetime import datetime
from typing import TypedDict

from msgspec.structs import replace

from replay import events as e
from replay._digest import conversation
from replay._history import History
from replay._rules import Transitions, require, shared
from replay.messages import Message, UserMessage
from replay.state import Ask, Attempt, CallState, Failures, Question, Spent, State
from replay.values import Definitions, Loosened, Phase, Queued, Rule, StopReason, Taken, Wait

transitions = Transitions()
QUEUE, MESSAGE = 100, 64 << 10
"""How many messages may wait for a request to the model, and bytes of one."""
REFUSED = 1_000
"""Names of requests whose refusal is remembered."""


class Conversation(TypedDict):
    """The fields of a state that a message changes."""

    messages: History[Message]
    conversation: str


def with_message(state: State, message: Message) -> Conversation:
    """The fields that one more message changes, for a caller that changes more at once."""
    return Conversation(messages=state.messages.append(message), conversation=conversation(state.conversation, message))


def add_message(state: State, message: Message) -> State:
    """The state with one more message."""
    return replace(state, **with_message(state, message))


@transitions.on(e.RunStarted)
def started(state: State, event: e.RunStarted, at: datetime) -> State:
    """The run begins: with the messages of the run that it continues, if any, and the task."""
    state = replace(state, **shared(State, event), phase="model", began=at, carried=1, uncounted=event.enqueued)
    for message in event.history:
        state = add_message(state, message)
    return add_message(state, UserMessage(event.task))


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


def _reopen(call: CallState, at: datetime, *, clock_back: bool, lease_lost: bool) -> CallState:
    """A call as a new life finds it: an attempt in flight is in doubt, a lookup in flight was never answered.

    While the holder before may still act, every attempt in doubt may, and has ended at this line at the earliest.
    """

    def after(attempt: Attempt) -> Attempt:
        if attempt.did == "in flight":
            attempt = replace(attempt, did="unknown", died=True, ended=at)
        if lease_lost and attempt.did == "unknown":
            attempt = replace(attempt, ended=at, lease_lost=True)
        return replace(attempt, expired=True) if clock_back else attempt

    if call.result is not None:
        return call
    if call.child is not None:
        return replace(call, child=replace(call.child, running=False, stop=None))
    return replace(
        call, attempts=tuple(after(a) for a in call.attempts), lookups=replace(call.lookups, in_flight=False)
    )


def _new_life(state: State, at: datetime, *, clock_back: bool = False, lease_lost: bool = False) -> State:
    failures = Failures() if state.stopped is not None else state.failures
    return replace(
        state,
        stopped=None,
        failures=failures,
        replies_refused=0 if state.stopped is not None else state.replies_refused,
        ask=None,
        spent=lose(state.spent, state.ask),
        calls=tuple(_reopen(c, at, clock_back=clock_back, lease_lost=lease_lost) for c in state.calls),
    )


@transitions.on(e.RunResumed)
def resumed(state: State, event: e.RunResumed, at: datetime) -> State:
    """A new life. One after a life that came to something need not count toward the limit."""
    require(state.stopped is None or not state.stopped.final, "the run was stopped for good")
    require(event.counted or state.uncounted, "the life before came to nothing")
    return replace(
        _new_life(state, at, clock_back=event.clock_back, lease_lost=event.lease_lost),
        carried=state.carried + 1,
        resumes=state.resumes + event.counted,
        uncounted=False,
        definitions=event.definitions,
        loosened=_loosened(state, event.definitions),
    )


def _loosened(state: State, now: Definitions) -> dict[str, Loosened]:
    """The tools that protect less in the life that begins than in any before."""
    before = state.definitions.tools if state.definitions is not None else {}
    tools = {
        name: state.loosened.get(name, Loosened()).after(before.get(name), now.tools.get(name))
        for name in sorted(before.keys() | state.loosened.keys())
    }
    return {name: loosened for name, loosened in tools.items() if loosened != Loosened()}


@transitions.on(e.RunForked)
def forked(state: State, event: e.RunForked, at: datetime) -> State:
    """From here on it is another run. Answers that the parent got stay; its other questions are asked again."""
    open_questions = {q.id for q in state.unanswered}
    questions: dict[str, Question] = {k: q for k, q in state.questions.items() if k not in open_questions}
    state = _new_life(state, at)
    return replace(
        state,
        run=event.run,
        uid=event.uid or state.uid,
        parent=event.parent,
        parent_call=None,
        trace="",
        forked_from=state.uid,
        phase=_forked_phase(state),
        carried=0,
        resumes=0,
        uncounted=False,
        fork_guard=state.fork_guard + event.fork_guard,
        questions=questions,
    )


def _forked_phase(state: State) -> Phase:
    """Where a fork goes on: a pause is over, since its questions are dropped, and a final answer is given again."""
    if state.phase == "done":
        return "model"
    return "tools" if state.phase == "paused" else state.phase


@transitions.on(e.LimitsChanged)
def limits_changed(state: State, event: e.LimitsChanged, at: datetime) -> State:
    """From here on these limits hold."""
    return replace(state, limits=event.limits)


@transitions.on(e.WorkspaceAccepted)
def accepted(state: State, event: e.WorkspaceAccepted, at: datetime) -> State:
    """The accepted contents are the expected ones now. The next request tells the model."""
    files = state.files | {f.path: (f.sha256,) for f in event.files}
    names = ", ".join(f.path for f in event.files)
    note = f"Files were changed from outside and {event.by} accepted them as they are now: {names}. Read them again."
    state = replace(state, files=files)
    if state.phase == "model":
        return add_message(state, UserMessage(note))
    return replace(state, notes=(*state.notes, note))


@transitions.on(e.WorkspaceMoved)
def moved(state: State, event: e.WorkspaceMoved, at: datetime) -> State:
    """The workspace's new place."""
    return replace(state, workspace=event.path)


@transitions.on(e.WaitUntil)
def waited(state: State, event: e.WaitUntil, at: datetime) -> State:
    """The run does nothing before `until`."""
    require(not state.busy, "something is in flight")
    return replace(state, wait=Wait(**shared(Wait, event)), uncounted=state.uncounted or event.rested)


@transitions.on(e.PhaseChanged)
def phase_changed(state: State, event: e.PhaseChanged, at: datetime) -> State:
    """The run is done, is paused, or goes on. Each is checked against the state."""
    require(not state.busy, "something is in flight")
    if event.phase == "done" and state.framework:  # its program says when it is done, and with which answer
        require(state.phase == "model", "calls have no result")
        return replace(state, phase="done", answer=event.answer, wait=None)
    if event.phase == "done":
        require(state.phase == "model" and state.stop is not None, "the last message is not a final reply")
        require(event.answer == state.answer, "the answer is not the last reply's text")
        return replace(state, phase="done", wait=None)
    if event.phase == "paused":
        require(state.phase == "tools" and state.waiting, "no question waits for an answer")
        return replace(state, phase="paused", wait=None)
    require(state.phase == "paused" and not state.unanswered, "a question has no answer yet")
    return replace(state, phase="tools", wait=None)


@transitions.on(e.RunStopped)
def stopped(state: State, event: e.RunStopped, at: datetime) -> State:
    """The run stops, and keeps its phase. What is in flight is in doubt after the next resume.

    After a stop for good there is none, so a request to the model that is in flight is lost now.
    """
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    return replace(
        state,
        stopped=StopReason(**shared(StopReason, event)),
        wait=None,
        taken=take(state, event),
        parked=state.parked + (event.reason == "Parked"),
        unavailable=state.unavailable + (event.reason == "ModelUnavailable"),
        uncounted=state.uncounted or event.reason in ("Interrupted", "Parked"),
        ask=None if event.final else state.ask,
        spent=lose(state.spent, state.ask) if event.final else state.spent,
    )


def take(state: State, event: e.QuestionAnswered | e.RunStopped | e.RuleAdded | e.MessageReceived) -> dict[str, Taken]:
    """The accepted requests, with the one that this event came by. A name is taken once."""
    if event.request is None:
        return state.taken
    require(event.request not in state.taken, f"request {event.request} was taken before")
    return state.taken | {event.request: Taken(who=event.who, post=event.post)}


@transitions.on(e.RuleAdded)
def rule_added(state: State, event: e.RuleAdded, at: datetime) -> State:
    """Later approvals that match are answered in the rule's name."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    rule = Rule(**shared(Rule, event), declared=state.declared(event.tool))
    return replace(state, rules=(*state.rules, rule), taken=take(state, event))


@transitions.on(e.MessageReceived)
def message_received(state: State, event: e.MessageReceived, at: datetime) -> State:
    """The message waits for the next request to the model."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    require(len(state.queue) < QUEUE, f"{QUEUE} messages wait already")
    require(len(event.text.encode()) <= MESSAGE, f"it is longer than {MESSAGE} bytes")
    return replace(state, queue=(*state.queue, Queued(**shared(Queued, event))), taken=take(state, event))


@transitions.on(e.RequestRefused)
def request_refused(state: State, event: e.RequestRefused, at: datetime) -> State:
    """A refusal takes no name: otherwise a wrong answer would bar the right one. The last of them are kept."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    refused = {name: said for name, said in state.refused.items() if name != event.request}
    refused[event.request] = Taken(**shared(Taken, event))
    return replace(state, refused=dict([*refused.items()][-REFUSED:]))


@transitions.on(e.StepRecorded)
def step_recorded(state: State, event: e.StepRecorded, at: datetime) -> State:
    """The life came to something; what it was, only the program reads that runs again."""
    return replace(state, uncounted=True)
