"""What requests to the model do to the state.

A turn is a saved reply to a request for a turn. A summary costs tokens, but is no turn.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._fold_life import add_message, lose
from replay._rules import Broken, Transitions, draft_of, present, require, shared, state_of
from replay.messages import AssistantMessage, Reply, UserMessage
from replay.state import Ask, CallState, Draft, Failures, Spent, State
from replay.values import Summary

transitions = Transitions()
_NONE = Failures()


def with_queue(state: State, taken: tuple[str, ...]) -> State:
    """The state in which these messages of the queue are part of the conversation; a final reply before is none."""
    if not taken:
        return state
    draft = draft_of(state)
    _take_queue(draft, taken)
    return state_of(draft)


def _take_queue(state: Draft, taken: tuple[str, ...]) -> None:
    waiting = state.queue[: len(taken)]
    require(taken == tuple([one.id for one in waiting]), "it takes other messages than wait")
    for one in waiting:
        add_message(state, UserMessage(one.text))
    state.queue, state.stop, state.answer = state.queue[len(taken) :], None, None


@transitions.on(e.ModelAsked)
def asked(state: Draft, event: e.ModelAsked, at: datetime) -> None:
    """A request is sent. Its bound is known before its reply. Nothing but another one can be in flight then."""
    require(state.ask is None, "something is in flight")
    if event.messages:
        _take_queue(state, event.messages)
    elif state.stop is not None:
        raise Broken("the last reply is final")
    number, messages = state.failures.count + 1, len(state.messages)
    if event.n != number:
        raise Broken(f"it is ask {number} in a row, not {event.n}")
    if not 0 <= event.upto <= messages:
        raise Broken("it covers messages that do not exist")
    if not state.rebuilt_upto <= event.rebuilt_upto <= messages:
        raise Broken("it sends other messages rebuilt than before")
    state.ask = Ask(purpose=event.purpose, n=event.n, upto=event.upto, bound=event.bound, at=at)
    state.rebuilt_upto, state.wait = event.rebuilt_upto, None


def _pay(spent: Spent, reply: Reply, ask: Ask) -> Spent:
    """What is spent with this reply. One without a price counts as the most it could cost."""
    dollars = reply.dollars if reply.dollars is not None else ask.bound.dollars
    return replace(
        spent,
        input_tokens=spent.input_tokens + reply.usage.input_tokens,
        output_tokens=spent.output_tokens + reply.usage.output_tokens,
        dollars=spent.dollars + (dollars or 0.0),
        unpriced=spent.unpriced + (reply.dollars is None),
    )


@transitions.on(e.ReplySaved)
def replied(state: Draft, event: e.ReplySaved, at: datetime) -> None:
    """A complete reply: a summary, a final answer, or calls to run."""
    ask = present(state.ask, "nothing was asked")
    reply = event.reply
    state.spent = _pay(state.spent, reply, ask)
    state.ask, state.failures, state.unavailable, state.uncounted = None, _NONE, 0, True
    if ask.purpose == "summary":
        state.summary = Summary(text=reply.text, upto=ask.upto, asked_at=len(state.messages))
        return
    turn = state.turns = state.turns + 1
    for index, call in enumerate(reply.calls):
        if call.id != f"{turn}.{index}":
            raise Broken(f"call {index} of turn {turn} is named {call.id!r}")
    state.calls = tuple([CallState(call=call) for call in reply.calls])
    if reply.calls:
        state.phase = "tools"
    elif reply.stop != "pause":
        state.stop, state.answer = reply.stop, reply.text
    add_message(state, AssistantMessage(reply))


@transitions.on(e.CallsMade)
def made(state: Draft, event: e.CallsMade, at: datetime) -> None:
    """A program's own calls. A final reply before was not the run's end."""
    require(state.framework, "nobody but a program makes calls without a model")
    require(not state.busy, "something is in flight")
    number = state.made = state.made + 1
    require(event.calls, "there are none")
    for index, call in enumerate(event.calls):
        require(call.id == f"a{number}.{index}", f"call {index} of its calls {number} is named {call.id!r}")
    state.phase, state.failures, state.stop, state.answer = "tools", _NONE, None, None
    state.calls = tuple([CallState(call=call) for call in event.calls])
    add_message(state, AssistantMessage(Reply(calls=event.calls, stop="tool_calls")))


@transitions.on(e.ModelFailed)
def failed(state: Draft, event: e.ModelFailed, at: datetime) -> None:
    """A request failed. If it may have been billed, its bound is spent."""
    ask, before = present(state.ask, "nothing was asked"), state.failures
    state.ask = None
    if event.billed:
        state.spent = lose(state.spent, ask)
    state.failures = Failures(**shared(Failures, event), count=before.count + 1, since=before.since or ask.at, at=at)


@transitions.on(e.ReplyRefused)
def reply_refused(state: Draft, event: e.ReplyRefused, at: datetime) -> None:
    """The last reply does not end the run; the model reads why."""
    require(not state.busy, "something is in flight")
    require(state.stop is not None, "the last message is not a final reply")
    add_message(state, UserMessage(event.why))
    state.stop, state.answer = None, None
    state.replies_refused += 1
