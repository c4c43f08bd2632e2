"""How asking the model changes the state.

A turn is a saved reply to an ask whose purpose was a turn; a summary costs spend and no turn (design, "The heart").
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from replay import _events as e
from replay._fold_life import lose, told
from replay._messages import Replied, Reply
from replay._rules import Broken, present, require
from replay._state import Ask, CallState, Failures, Spent, State, Summary


def asked(state: State, event: e.ModelAsked, at: datetime) -> State:
    """An ask is sent; its bound is known before its reply."""
    require(not state.busy, "something is in flight")
    require(state.stop is None, "the last reply is final")
    require(event.n == state.failures.count + 1, f"it is ask {state.failures.count + 1} in a row, not {event.n}")
    require(0 <= event.upto <= len(state.messages), "it covers messages that don't exist")
    return replace(state, ask=Ask(purpose=event.purpose, n=event.n, upto=event.upto, bound=event.bound), wait=None)


def _pay(spent: Spent, reply: Reply, ask: Ask) -> Spent:
    """What is spent with this reply; one without a price counts as the most its ask could cost, never as nothing."""
    dollars = reply.dollars if reply.dollars is not None else ask.bound.dollars
    return replace(
        spent,
        input_tokens=spent.input_tokens + reply.usage.input_tokens,
        output_tokens=spent.output_tokens + reply.usage.output_tokens,
        dollars=spent.dollars + (dollars or 0.0),
        unpriced=spent.unpriced + (reply.dollars is None),
    )


def replied(state: State, event: e.ReplySaved, at: datetime) -> State:
    """A complete reply: a summary, a final answer, or calls to run."""
    ask = present(state.ask, "nothing was asked")
    reply = event.reply
    spent = _pay(state.spent, reply, ask)
    if ask.purpose == "summary":
        summary = Summary(text=reply.text, upto=ask.upto)
        return replace(state, ask=None, failures=Failures(), spent=spent, summary=summary)
    turn = state.turns + 1
    for index, call in enumerate(reply.calls):
        if call.id != f"{turn}.{index}":
            raise Broken(f"call {index} of turn {turn} is named {call.id!r}")
    ends = not reply.calls and reply.stop != "pause"
    return replace(
        state,
        ask=None,
        failures=Failures(),
        spent=spent,
        turns=turn,
        phase="tools" if reply.calls else state.phase,
        calls=tuple([CallState(call=call) for call in reply.calls]),
        stop=reply.stop if ends else state.stop,
        answer=reply.text if ends else state.answer,
        **told(state, Replied(reply)),
    )


def failed(state: State, event: e.ModelFailed, at: datetime) -> State:
    """An ask came to nothing; if it may have been billed, its bound is spent."""
    ask = present(state.ask, "nothing was asked")
    return replace(
        state,
        ask=None,
        spent=lose(state.spent, ask) if event.billed else state.spent,
        failures=Failures(
            count=state.failures.count + 1,
            transient=event.transient,
            error=event.error,
            at=at,
            retry_after=event.retry_after,
        ),
    )
