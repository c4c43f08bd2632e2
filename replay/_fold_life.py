"""What events about the run itself do to its state: lives, limits, accepted files, phases, stops.

Only a new life turns *in flight* into *in doubt*: the process that was acting is gone, and nobody knows what its last
calls did. A request that it had sent is lost if its reply was not saved, and its bound counts as spent.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._codec import digest_conversation
from replay._rules import Transitions, require, shared
from replay.messages import Message, UserMessage
from replay.state import Ask, Attempt, CallState, Draft, Failures, Spent, State
from replay.values import Definitions, Loosened, Phase, Queued, Rule, StopReason, Taken, Wait

transitions = Transitions()
QUEUE, MESSAGE = 100, 64 << 10
"""How many messages may wait for a request to the model, and bytes of one."""
REFUSED = 1_000
"""Names of requests whose refusal is remembered."""


def add_message(state: Draft, message: Message) -> None:
    """One more message is part of the conversation."""
    state.messages.grow(message)
    state.conversation = digest_conversation(state.conversation, message)


@transitions.on(e.RunStarted)
def started(state: Draft, event: e.RunStarted, at: datetime) -> None:
    """The run begins: with the messages of the run that it continues, if any, and the task."""
    for name, value in shared(State, event).items():
        setattr(state, name, value)
    state.phase, state.began, state.carried, state.uncounted = "model", at, 1, event.enqueued
    for message in (*event.history, UserMessage(event.task)):
        add_message(state, message)


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


def _new_life(state: Draft, at: datetime, *, clock_back: bool = False, lease_lost: bool = False) -> None:
    """After a stop failures are counted anew. When the model wants to be asked stays, unless it was what stopped."""
    if state.stopped is not None:
        failed, by_model = state.failures, state.stopped.reason in ("ModelUnavailable", "ConversationRefused")
        again = by_model or failed.retry_after is None
        state.failures = Failures() if again else Failures(at=failed.at, retry_after=failed.retry_after)
        state.stopped, state.replies_refused = None, 0
    state.ask, state.spent = None, lose(state.spent, state.ask)
    state.calls = tuple(_reopen(c, at, clock_back=clock_back, lease_lost=lease_lost) for c in state.calls)


@transitions.on(e.RunResumed)
def resumed(state: Draft, event: e.RunResumed, at: datetime) -> None:
    """A new life. One after a life that came to something need not count toward the limit."""
    require(state.stopped is None or not state.stopped.final, "the run was stopped for good")
    require(event.counted or state.uncounted, "the life before came to nothing")
    _new_life(state, at, clock_back=event.clock_back, lease_lost=event.lease_lost)
    state.carried += 1
    state.resumes += event.counted
    state.uncounted = False
    state.loosened = _loosened(state, event.definitions)
    state.definitions = event.definitions


def _loosened(state: Draft, now: Definitions) -> dict[str, Loosened]:
    """The tools that protect less in the life that begins than in any before."""
    before = state.definitions.tools if state.definitions is not None else {}
    tools = {
        name: state.loosened.get(name, Loosened()).after(before.get(name), now.tools.get(name))
        for name in sorted(before.keys() | state.loosened.keys())
    }
    return {name: loosened for name, loosened in tools.items() if loosened != Loosened()}


@transitions.on(e.RunForked)
def forked(state: Draft, event: e.RunForked, at: datetime) -> None:
    """From here on it is another run. Answers that the parent got stay; its other questions are asked again.

    So is whether a call may run that repeats what is in the fork guard: the parent's answer was about less than that.
    """
    _new_life(state, at)
    state.run, state.parent, state.parent_call, state.trace = event.run, event.parent, None, ""
    state.uid, state.forked_from = event.uid or state.uid, state.uid
    state.phase = _FORKED.get(state.phase, state.phase)
    state.carried, state.resumes, state.uncounted = 0, 0, False
    state.fork_guard += event.fork_guard
    answered = [(name, asked, asked.answer.answer) for name, asked in state.questions.items() if asked.answer]
    again = {effect.tool for effect in event.fork_guard}
    state.questions = {
        name: replace(asked, guarded=None) if said == "rerun" and asked.tool in again else asked
        for name, asked, said in answered
    }


_FORKED: dict[Phase, Phase] = {"done": "model", "paused": "tools"}
"""Where a fork goes on: a pause is over, since its questions are dropped, and a final answer is given again."""


@transitions.on(e.LimitsChanged)
def limits_changed(state: Draft, event: e.LimitsChanged, at: datetime) -> None:
    """From here on these limits hold."""
    state.limits = event.limits


@transitions.on(e.WorkspaceAccepted)
def accepted(state: Draft, event: e.WorkspaceAccepted, at: datetime) -> None:
    """The accepted contents are the expected ones now. The next request tells the model."""
    state.files = state.files | {f.path: (f.sha256,) for f in event.files}
    names = ", ".join(f.path for f in event.files)
    note = f"Files were changed from outside and {event.by} accepted them as they are now: {names}. Read them again."
    if state.phase == "model":
        add_message(state, UserMessage(note))
    else:
        state.notes = (*state.notes, note)


@transitions.on(e.WorkspaceMoved)
def moved(state: Draft, event: e.WorkspaceMoved, at: datetime) -> None:
    """The workspace's new place."""
    state.workspace = event.path


@transitions.on(e.WaitUntil)
def waited(state: Draft, event: e.WaitUntil, at: datetime) -> None:
    """The run does nothing before `until`."""
    require(not state.busy, "something is in flight")
    state.wait = Wait(**shared(Wait, event))
    state.uncounted = state.uncounted or event.rested


@transitions.on(e.PhaseChanged)
def phase_changed(state: Draft, event: e.PhaseChanged, at: datetime) -> None:
    """The run is done, is paused, or goes on. Each is checked against the state."""
    require(not state.busy, "something is in flight")
    if event.phase == "done" and state.framework:  # its program says when it is done, and with which answer
        require(state.phase == "model", "calls have no result")
        state.answer = event.answer
    elif event.phase == "done":
        require(state.phase == "model" and state.stop is not None, "the last message is not a final reply")
        require(event.answer == state.answer, "the answer is not the last reply's text")
    elif event.phase == "paused":
        require(state.phase == "tools" and state.waiting, "no question waits for an answer")
    else:
        require(state.phase == "paused" and not state.unanswered, "a question has no answer yet")
    state.phase, state.wait = event.phase, None


@transitions.on(e.RunStopped)
def stopped(state: Draft, event: e.RunStopped, at: datetime) -> None:
    """The run stops, and keeps its phase. What is in flight is in doubt after the next resume.

    After a stop for good there is none, so a request to the model that is in flight is lost now.
    """
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    take(state, event)
    state.stopped, state.wait = StopReason(**shared(StopReason, event)), None
    state.parked += event.reason == "Parked"
    state.unavailable += event.reason == "ModelUnavailable"
    state.uncounted = state.uncounted or event.reason in ("Interrupted", "Parked")
    if event.final:
        state.ask, state.spent = None, lose(state.spent, state.ask)


def take(state: Draft, event: e.QuestionAnswered | e.RunStopped | e.RuleAdded | e.MessageReceived) -> None:
    """The request that this event came by, if by one, is accepted. A name is taken once."""
    if event.request is not None:
        require(event.request not in state.taken, f"request {event.request} was taken before")
        state.taken = state.taken | {event.request: Taken(who=event.who, post=event.post)}


@transitions.on(e.RuleAdded)
def rule_added(state: Draft, event: e.RuleAdded, at: datetime) -> None:
    """Later approvals that match are answered in the rule's name."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    rule = Rule(**shared(Rule, event), declared=state.declared(event.tool))
    state.rules = (*state.rules, rule)
    take(state, event)


@transitions.on(e.MessageReceived)
def message_received(state: Draft, event: e.MessageReceived, at: datetime) -> None:
    """The message waits for the next request to the model."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    require(len(state.queue) < QUEUE, f"{QUEUE} messages wait already")
    require(len(event.text.encode()) <= MESSAGE, f"it is longer than {MESSAGE} bytes")
    state.queue = (*state.queue, Queued(**shared(Queued, event)))
    take(state, event)


@transitions.on(e.RequestRefused)
def request_refused(state: Draft, event: e.RequestRefused, at: datetime) -> None:
    """A refusal takes no name: otherwise a wrong answer would bar the right one. The last of them are kept."""
    require(state.stopped is None or not state.stopped.final, "it was stopped for good before")
    refused = {name: said for name, said in state.refused.items() if name != event.request}
    refused[event.request] = Taken(**shared(Taken, event))
    state.refused = dict([*refused.items()][-REFUSED:])


@transitions.on(e.StepRecorded)
def step_recorded(state: Draft, event: e.StepRecorded, at: datetime) -> None:
    """The life came to something, unless it failed; what it was, only the program reads that runs again."""
    state.uncounted = state.uncounted or event.raw != ""
