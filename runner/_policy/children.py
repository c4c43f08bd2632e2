"""Child runs: when one is started or carried on, with what limits, and what its rest means for its parent.

1. Consecutive calls of agents run side by side. Each may use an equal share of what the parent has left, and what it
   used before; of its agent's own limits it never uses more. Where too little is left for all, the others wait.
2. A child that waits for a person or a time is left alone until then; its parent rests with it.
3. A child that reached its share goes on with a new one as long as the parent has anything left; else the parent
   stops at its own limit, and whoever raises that carries both on.
4. A child that can't go on by itself has failed, and the model reads why: it was stopped for good, reached a limit of
   its own agent, or its model gave no answer that counts. Any other stop of a child is one of its parent's too.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from replay import Event, State
from replay.events import ChildStarted, PhaseChanged, ResultRecorded, RunStopped, WaitUntil
from replay.state import Child
from replay.values import Limits
from runner._agent import keys
from runner._agent.agent import AnyAgent
from runner._agent.agent_tool import AgentTool
from runner._policy import ladder, limits
from runner._policy.pending import Pending
from runner.errors import BadAgent

T = TypeVar("T", int, float)
AT_A_LIMIT = frozenset({"TurnLimit", "TokenLimit", "DollarLimit", "Deadline"})
FAILED = frozenset({"EmptyReply", "OutputInvalid", "ConversationRefused"})


def agent_of(agent: AnyAgent, state: State, call: str) -> AnyAgent:
    """The agent whose run does a call. Raises `BadAgent` where the current code has another one, or none."""
    found = state.find(call)
    assert found is not None  # decide starts only calls of this reply
    tool, child = agent.tool(found.call.tool), found.child
    if not isinstance(tool, AgentTool) or (child is not None and tool.agent.name != child.agent):
        runs = f"an unfinished child run, {child.run} of agent {child.agent!r}" if child is not None else "a child run"
        raise BadAgent(f"call {call} of {state.run} is {runs}, and its tool {found.call.tool} is not that agent now")
    return tool.agent


def is_child(call: Pending) -> bool:
    """Whether a call is done by a child run."""
    return call.call.child is not None or isinstance(call.tool, AgentTool)


def wave(calls: Sequence[Pending], now: datetime) -> list[Event]:
    """What comes next for calls that child runs do, and that may run side by side."""
    for call in calls:
        ended = _ended(call, now)
        if ended is not None:
            return [ended]
    ready = [call for call in calls if not (call.call.child and _waits(call.call.child, now))]
    if not ready:
        return _rest(calls)
    done = [call for call in ready if call.call.child is not None and call.call.child.phase == "done"]
    state = ready[0].state
    stop = None if done else limits.exceeded(state, state.limits)
    return [stop] if stop is not None else _started(done or ready)


def _ended(call: Pending, now: datetime) -> ResultRecorded | RunStopped | None:
    """What a child that stopped means for its parent, unless it may go on."""
    child = call.call.child
    if child is None or child.stop is None:
        return None
    own, why = agent_of(call.agent, call.state, call.id).limits, child.stop
    late = own.until is not None and now >= own.until
    failed = why.final or why.reason in FAILED or late or limits.exceeded(child, own) is not None
    if failed and why.reason != "Interrupted":
        text = f"The call failed: run {child.run}, which did it, stopped ({why.reason}: {why.detail})"
        return ResultRecorded(call=call.id, how="failed", text=text)
    if why.reason in AT_A_LIMIT or why.reason == "Interrupted":
        return None
    return RunStopped(reason=why.reason, detail=f"child {child.run}: {why.detail}")


def _waits(child: Child, now: datetime) -> bool:
    """Whether a child waits for a person or a time."""
    return child.resting and (child.due is None or child.due > now)


def _rest(calls: Sequence[Pending]) -> list[Event]:
    """The parent rests with its children: until the earliest of their times, else until a person answers."""
    times = [(call.call.child.until, call) for call in calls if call.call.child and call.call.child.until]
    if not times:
        return [PhaseChanged(phase="paused")]
    until, first = min(times, key=lambda one: one[0])
    return ladder.once(first.state, WaitUntil(until=until, why="child", call=first.id))


def _started(calls: Sequence[Pending]) -> list[Event]:
    """The children that may run now, each with an equal share of what the parent has left: none of it is in use."""
    state, most = calls[0].state, calls[0].state.limits
    turns = _left(most.turns, state.turns_used)
    tokens = _left(most.tokens, state.spent.tokens)
    dollars = _left(most.dollars, state.spent.total_dollars)
    fewest = min([len(calls), *(whole for whole in (turns, tokens) if whole is not None)])
    of = max(1, fewest)  # one that is done may have used up all, and still has to give its result
    each = None if dollars is None else dollars / of
    return [
        _start(call, replace(most, turns=_part(turns, of, place), tokens=_part(tokens, of, place), dollars=each))
        for place, call in enumerate(calls[:of])
    ]


def _left(most: T | None, used: T) -> T | None:
    """What is left of a limit: nothing of one that a resume set below what is used."""
    return None if most is None else most - min(most, used)


def _part(whole: int | None, of: int, place: int) -> int | None:
    """One of so many equal parts; what can't be divided goes to the first."""
    return None if whole is None else whole // of + (place < whole % of)


def _start(call: Pending, share: Limits) -> ChildStarted:
    state, child, agent = call.state, call.call.child, agent_of(call.agent, call.state, call.id)
    uid = keys.key(state.uid, call.id)
    used = child or Child(run="", uid="", agent="", limits=share)
    own = agent.limits
    return ChildStarted(
        call=call.id,
        run=child.run if child is not None else keys.child_id(agent.name, uid),
        uid=child.uid if child is not None else uid,
        agent=agent.name,
        limits=Limits(
            turns=_least(share.turns, used.turns_used, own.turns),
            tokens=_least(share.tokens, used.spent.tokens, own.tokens),
            dollars=_least(share.dollars, used.spent.total_dollars, own.dollars),
            until=min((at for at in (share.until, own.until) if at is not None), default=None),
            resumes=share.resumes,
        ),
        arguments=call.arguments.text if child is None else None,
    )


def _least(share: T | None, used: T, own: T | None) -> T | None:
    """The share and what was used before, or the agent's own limit if that is less."""
    most = None if share is None else share + used
    return own if most is None else most if own is None else min(most, own)
