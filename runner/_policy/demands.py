"""What a program with a loop of its own waits for, and what comes due by that.

Such a program, a framework's agent or plain Python, says when the model is asked, which calls are made and when the run
is done. Everything else is chosen as in any run: limits, gates, questions, waves, the ladder. What the program has not
demanded stays as it is. Calls of a reply that it passed over have its own words as their result, as soon as it demands
something that comes after them.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

import replay
from replay import Event, State
from replay import events as e
from replay.events import CallsMade, ModelAsked, PhaseChanged, QuestionAnswered, ReplyRefused, ResultRecorded
from replay.messages import CostBound, ToolCall
from replay.values import Digests
from runner._agent.agent import AnyAgent
from runner._policy import gates, limits
from runner._policy.pending import Pending

NOT_RUN = "The program did not run it."
ON = "The program asked again."
HELD = "the program needs a yes"
EDITED = "the program runs it with other arguments"


class Ask(msgspec.Struct, frozen=True):
    """A request that the program sends to the model: the digests of its parts, and the most it can cost."""

    digests: Digests
    bound: CostBound


class Demands(msgspec.Struct, frozen=True):
    """What a program waits for.

    `next` is what it does after the current reply: ask, make calls of its own, or end with an answer. `calls` are those
    of the reply that it waits for, `approvals` those that it holds back until a person approved them. `words`: its own
    results, by the provider's id or the call's, for calls that it passed over. `edits`: the arguments, as JSON, that it
    runs calls with instead of those that were written.
    """

    next: Ask | tuple[ToolCall, ...] | str | None = None
    calls: frozenset[str] = frozenset()
    approvals: frozenset[str] = frozenset()
    words: Mapping[str, str] = {}
    edits: Mapping[str, str] = {}


NOTHING = Demands()


def due(agent: AnyAgent, state: State, demands: Demands) -> list[Event]:
    """What comes next between two replies."""
    wanted = demands.next
    if isinstance(wanted, str):
        return [PhaseChanged(phase="done", answer=wanted)]
    if isinstance(wanted, tuple):
        return [CallsMade(calls=wanted)]
    if wanted is None:
        return []
    stop = limits.exceeded(state, state.limits)
    if stop is not None:
        return [stop]
    limits.priced(agent.model.name, state.limits, wanted.bound)
    n = state.failures.count + 1
    refused: list[Event] = [] if state.stop is None else [ReplyRefused(why=ON)]
    return [*refused, ModelAsked(purpose="turn", n=n, upto=0, bound=wanted.bound, digests=wanted.digests)]


def calls(pending: Sequence[Pending], demands: Demands) -> tuple[list[Pending], list[Event]]:
    """The calls that are demanded, and what is written of the others, or of those that wait for a yes."""
    held = [call for call in pending if call.id in demands.approvals and not call.approvals]
    if held:
        asked = [call.question("approve", HELD) for call in held]
        given = (gates.answered(call, q) for call, q in zip(held, asked, strict=True))
        return [], [*asked, *filter(None, given)]
    edited = [
        call
        for call in pending
        if not call.call.tried and call.call.bound != demands.edits.get(call.id, call.call.bound)
    ]
    if edited:
        return [], [event for call in edited for event in _edited(call, demands.edits[call.id])]
    wanted = [call for call in pending if call.id in demands.calls]
    made = isinstance(demands.next, tuple) and pending[0].call.call in demands.next  # just now, not passed over
    if wanted or made or demands.next is None:
        return wanted, []
    return [], [_passed_over(call, demands) for call in pending]


def _edited(call: Pending, arguments: str) -> list[Event]:
    """The question and the answer by which a call has other arguments: nobody else is asked."""
    asked, digest = call.question("approve", EDITED), replay.digest(arguments.encode())
    given = {"who": call.state.framework, "arguments": arguments, "new_digest": digest}
    return [asked, QuestionAnswered(id=asked.id, answer="edit", digest=asked.digest, **given)]


def _passed_over(call: Pending, demands: Demands) -> ResultRecorded:
    text = demands.words.get(call.call.call.provider_id) or demands.words.get(call.id, NOT_RUN)
    return ResultRecorded(call=call.id, how="invalid", text=text)


def told(events: Iterable[replay.AnyEvent]) -> Demands:
    """What the program must have waited for when these decisions were written: a retrace is given it."""
    wanted: Ask | tuple[ToolCall, ...] | str | None = None
    events = list(events)
    demanded, held, words = set[str](), set[str](), dict[str, str]()
    asked = {event.id: event.call for event in events if isinstance(event, e.QuestionAsked) and event.why == EDITED}
    given = [event for event in events if isinstance(event, QuestionAnswered) and event.id in asked]
    edits = {asked[event.id]: event.arguments or "" for event in given}
    for event in events:
        match event:
            case ModelAsked():
                wanted = Ask(event.digests, event.bound)
            case CallsMade():
                wanted = event.calls
            case PhaseChanged(phase="done"):
                wanted = event.answer or ""
            case e.RunStopped(reason="TurnLimit" | "TokenLimit" | "DollarLimit"):
                wanted = Ask(Digests(instructions="", tools="", messages="", parameters=""), CostBound(dollars=0.0))
            case ResultRecorded(how="invalid"):
                words[event.call] = event.text
            case e.QuestionAsked(why=why) if why == HELD:
                held.add(event.call)
            case ResultRecorded() | e.AttemptMarked() | e.LookupAsked() | e.QuestionAsked():
                demanded.add(event.call)
            case e.WaitUntil(call=str(call)):
                demanded.add(call)
    return Demands(wanted, frozenset(demanded if wanted else demanded | words.keys()), frozenset(held), words, edits)
