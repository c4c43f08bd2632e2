"""The request that is due to the model, and the event that says so before it is sent.

A request is made from the state alone: its bytes are the same in every process, so a provider's prompt cache still
hits after a resume. Its digests are made from the request itself: a change of the code that builds requests shows
there, whatever the agent says of itself.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import UNSET
from msgspec.structs import replace

import replay
from replay import State
from replay.events import ModelAsked
from replay.messages import AssistantMessage, CostBound, Message, ToolCall, ToolResults
from replay.values import Digests
from runner._agent import context as _context
from runner._agent import json_text
from runner._agent.agent import AnyAgent
from runner._agent.model import Request
from runner._policy import limits
from runner.errors import BadAgent


def build(agent: AnyAgent, state: State, at: datetime | None = None) -> Request:
    """The request that was asked for in this state, or is due in it: a summary if the context policy wants one.

    `at` is the log's time of the ask, by which it is priced.
    """
    is_turn = state.ask is not None and state.ask.purpose == "turn"  # what waited when it was asked for is in it by now
    return _build(agent, state, at, None if is_turn else _context.wanted(agent.context, state))


def _build(agent: AnyAgent, state: State, at: datetime | None, summary: _context.Summarise | None) -> Request:
    if summary is not None:
        messages = _context.summarised(state, summary.upto)
    else:
        messages = rebuilt(state.messages[:], state.rebuilt_upto) if state.rebuilt_upto else state.messages[:]
        messages = _context.sent(state, messages, _context.trim(agent.context, state))
    return Request(
        run=state.run,
        purpose="turn" if summary is None else "summary",
        turn=state.turns + 1,
        n=state.failures.count + 1,
        instructions=agent.instructions_for(state.inputs) if summary is None else summary.instructions,
        tools=agent.specs if summary is None else (),
        messages=messages,
        parameters=agent.parameters,
        at=at,
        output=agent.answers.native if summary is None and agent.answers is not None else None,
    )


def bound(agent: AnyAgent, request: Request) -> CostBound:
    """The most that `request` can cost. Raises `BadAgent` where the agent's model can't say it."""
    try:
        most: object = agent.model.bound(request)
    except Exception as error:  # the user's code
        raise BadAgent(f"the bound of model {agent.model.name} raised {type(error).__name__}: {error}") from error
    if not isinstance(most, CostBound):
        raise BadAgent(f"the bound of model {agent.model.name} is {type(most).__name__}, not a runner.CostBound")
    return most


def asked(agent: AnyAgent, state: State, now: datetime, rebuilt_upto: int = 0) -> ModelAsked:
    """The ask that is about to be sent, with the most it can cost.

    Raises `BadAgent` when the model's bound can't be logged, or is not in dollars where dollars are limited.
    """
    summary = _context.wanted(agent.context, state)
    taken: tuple[str, ...] = ()
    if summary is None and state.queue:
        taken = tuple([one.id for one in state.queue])
        state = replay.with_queue(state, taken)
    if rebuilt_upto > state.rebuilt_upto:
        state = replace(state, rebuilt_upto=rebuilt_upto)
    upto = summary.upto if summary is not None else 0
    request = _build(agent, state, now, summary)
    ask = ModelAsked(
        purpose="turn" if summary is None else "summary",
        n=request.n,
        upto=upto,
        bound=bound(agent, request),
        digests=_digests(agent, state, request, upto),
        rebuilt_upto=state.rebuilt_upto,
        messages=taken,
    )
    try:
        replay.encode(ask)
    except replay.NotFaithful as error:
        raise BadAgent(f"the bound that model {agent.model.name} gives can't be logged: {error}") from error
    limits.priced(agent.model.name, state.limits, ask.bound)
    return ask


def _digests(agent: AnyAgent, state: State, request: Request, upto: int) -> Digests:
    """What `request` is made of.

    Naming all messages at every ask must cost one message, not the history: their chain, how many are sent, and the one
    that stands for what a summary replaced. Only what is sent rebuilt is named in full.
    """
    short = request.messages[0] if state.summary is not None else None
    less = _context.trim(agent.context, state)
    return Digests(
        instructions=agent.definitions.instructions
        if request.instructions == agent.instructions
        else replay.digest(request.instructions.encode("utf-8", "replace")),
        tools=agent.tools_digest
        if request.tools == agent.specs
        else replay.digest_value([list(s) for s in request.tools]),
        messages=replay.digest_value(
            [
                state.conversation,
                len(request.messages),
                short,
                upto,
                *([state.rebuilt_upto, request.messages] if state.rebuilt_upto else []),
                *([less.drop, less.blank] if less.drop or less.blank else []),
            ]
        ),
        parameters=agent.definitions.parameters
        if request.parameters == agent.parameters and request.output is None
        else replay.digest_value([dict(request.parameters), request.output]),
    )


def rebuilt(messages: tuple[Message, ...], upto: int) -> tuple[Message, ...]:
    """The messages, with every reply before index `upto` made anew from its text and its calls."""
    return (*_rebuilt(messages[:upto]), *messages[upto:])


def _rebuilt(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, ToolResults):  # not every server takes images
            yield ToolResults(tuple(replace(result, images=UNSET) for result in message.results))
        elif not isinstance(message, AssistantMessage):
            yield message
        else:
            reply = message.reply
            text = reply.text if reply.text.strip() else ""
            yield AssistantMessage(
                replace(reply, raw="", text=text, calls=tuple(_rebuilt_call(call) for call in reply.calls))
            )


def _rebuilt_call(call: ToolCall) -> ToolCall:
    """A call with no id of the provider's, so that adapters make one of ours."""
    try:
        given = call.arguments if json_text.parse(call.arguments) is not None else "{}"
    except json_text.InvalidArguments:
        given = json.dumps({"invalid": call.arguments}, ensure_ascii=False)
    return replace(call, provider_id="", arguments=given or "{}")
