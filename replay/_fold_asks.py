"""What requests to the model do to the state.

A turn is a saved reply to a request for a turn. A summary costs tokens, but is no turn.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._fold_life import add_message, lose, with_message
from replay._rules import Broken, Transitions, present, require, shared
from replay.messages import AssistantMessage, Reply, UserMessage
from replay.state import Ask, CallState, Failures, Spent, State
from replay.values import Summary

transitions = Transitions()


def with_queue(state: State, taken: tuple[str, ...]) -> State:
    """The state in which these messages of the queue are part of the conversation; a final reply before is none."""
    require(taken == tuple([one.id for one in state.queue[: len(taken)]]), "it takes other messages than wait")
    if not taken:
        return state
    for one in state.queue[: len(taken)]:
        state = add_message(state, UserMessage(one.text))
    return replace(state, queue=state.queue[len(taken) :], stop=None, answer=None)


@transitions.on(e.ModelAsked)
def asked(state: State, event: e.ModelAsked, at: datetime) -> State:
    """A request is sent. Its bound is known before its reply."""
    require(not state.busy, "something is in flight")
    require(state.stop is None or event.messages, "the last reply is final")
    state = with_queue(state, event.messages)
    require(event.n == state.failures.count + 1, f"it is ask {state.failures.count + 1} in a row, not {event.n}")
    require(0 <= event.upto <= len(state.messages), "it covers messages that do not exist")
    rebuilt = event.rebuilt_upto
    require(state.rebuilt_upto <= rebuilt <= len(state.messages), "it sends other messages rebuilt than before")
    return replace(state, ask=Ask(**shared(Ask, event), at=at), rebuilt_upto=rebuilt, wait=None)


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
def replied(state: State, event: e.ReplySaved, at: datetime) -> State:
    """A complete reply: a summary, a final answer, or calls to run."""
    ask = present(state.ask, "nothing was asked")
    reply = event.reply
    spent = _pay(state.spent, reply, ask)
    if ask.purpose == "summary":
        summary = Summary(text=reply.text, upto=ask.upto, asked_at=len(state.messages))
        state = replace(state, ask=None, failures=Failures(), unavailable=0, spent=spent)
        return replace(state, uncounted=True, summary=summary)
    turn = state.turns + 1
    for index, call in enumerate(reply.calls):
        if call.id != f"{turn}.{index}":
            raise Broken(f"call {index} of turn {turn} is named {call.id!r}")
    ends = not reply.calls and reply.stop != "pause"
    return replace(
        state,
        ask=None,
        failures=Failures(),
        unavailable=0,
        spent=spent,
        turns=turn,
        uncounted=True,
        phase="tools" if reply.calls else state.phase,
        calls=tuple([CallState(call=call) for call in reply.calls]),
        stop=reply.stop if ends else state.stop,
        answer=reply.text if ends else state.answer,
        **with_message(state, AssistantMessage(reply)),
    )


@transitions.on(e.CallsMade)
def made(state: State, event: e.CallsMade, at: datetime) -> State:
    """A program's own calls. A final reply before was not the run's end."""
    require(state.framework, "nobody but a program makes calls without a model")
    require(not state.busy, "something is in flight")
    number = state.made + 1
    require(event.calls, "there are none")
    for index, call in enumerate(event.calls):
        require(call.id == f"a{number}.{index}", f"call {index} of its calls {number} is named {call.id!r}")
    return replace(
        state,
        made=number,
        phase="tools",
        calls=tuple([CallState(call=call) for call in event.calls]),
        stop=None,
        answer=None,
        failures=Failures(),
        **with_message(state, AssistantMessage(Reply(calls=event.calls, stop="tool_calls"))),
    )


@transitions.on(e.ModelFailed)
def failed(state: State, event: e.ModelFailed, at: datetime) -> State:
    """A request failed. If it may have been billed, its bound is spent."""
    ask = present(state.ask, "nothing was asked")
    return replace(
        state,
        ask=None,
        spent=lose(state.spent, ask) if event.billed else state.spent,
        failures=Failures(
            **shared(Failures, event), count=state.failures.count + 1, since=state.failures.since or ask.at, at=at
        ),
    )


@transitions.on(e.ReplyRefused)
def reply_refused(state: State, event: e.ReplyRefused, at: datetime) -> State:
    """The last reply does not end the run; the model reads why."""
    require(not state.busy, "something is in flight")
    require(state.stop is not None, "the last message is not a final reply")
    return replace(
        add_message(state, UserMessage(event.why)), stop=None, answer=None, replies_refused=state.replies_refused + 1
    )
