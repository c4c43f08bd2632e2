"""Carries child runs on: in the process and the slot of their parent, and as long as that is carried on.

A child is a run as any other, opened by its parent's life. It exists once: one that was made before is opened, also
when it ended since. It drains when its parent does, and its parent's lock is kept until its log is closed. At its end
here the parent is told how it rests; one that is done gives the call its result.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import eventlog
from eventlog import RunExists
from replay import Event, State
from replay.events import ChildStarted, ResultRecorded
from replay.values import ParentCall
from runner._agent import sanitize
from runner._agent.agent import AnyAgent
from runner._engine import opening, save_pool
from runner._engine.flight import Outcomes
from runner._engine.loop import Life
from runner._engine.opening import ChildOf, Opened
from runner._policy.children import agent_of
from runner._runs import children, load
from runner._runs.questions import Finished
from runner.errors import Stopped

Carry = Callable[[Opened, None], Awaitable[tuple[State, bool]]]
_BUSY, _LOOKS = 0.05, 600
"""Seconds between looks at a child that somebody opened to say something to it, and how many looks there are."""


async def carry_on(parent: Life, carry: Carry, enter: Any, state: State, started: ChildStarted) -> Outcomes:
    """Carry a child on until it rests, and say what it came to."""
    try:
        agent = agent_of(parent.agent, state, started.call).replace(limits=started.limits)
        async with enter(agent) as resources:
            child = await _carried(parent, carry, agent, resources, state, started)
    except Exception as error:  # noqa: BLE001 (the outcomes of what runs beside it are saved first)
        return Outcomes(error=error)
    events: list[Event] = [children.rests(started.call, child)]
    if child.phase == "done":
        stored = sanitize.result(child.answer or "", ())
        events.append(ResultRecorded(call=started.call, how="ran", **stored.fields()))
    return Outcomes(events)


async def _carried(
    parent: Life, carry: Carry, agent: AnyAgent, resources: Any, state: State, started: ChildStarted
) -> State:
    """The state of a child after it was carried on."""
    try:
        opened = await _opened(functools.partial(_open, parent, agent, state, started))
    except Stopped:  # for good, or by somebody who was faster
        return load.read(parent.store, started.run)
    if isinstance(opened, Finished):
        return opened.state
    life = opened.life
    parent.inflight.begin()
    life.on_closed = parent.inflight.end
    life.executor.resources, life.rest = resources, parent.rest
    parent.drain.tell(life.drain.ask)
    try:
        after, _ = await carry(opened, None)
    except Stopped:  # what stopped it stands, so nothing was written
        after = opened.state
    finally:
        life.end()
    return life.after or after


async def _opened(opens: Callable[[], Opened | Finished[Any]]) -> Opened | Finished[Any]:
    """The child, as soon as nobody else has it for a moment. Raises `RunLocked` when it is held for long."""
    for _ in range(_LOOKS):
        try:
            return await save_pool.saved(opens)
        except eventlog.RunLocked:
            await asyncio.sleep(_BUSY)
    return await save_pool.saved(opens)


def _open(parent: Life, agent: AnyAgent, state: State, started: ChildStarted) -> Opened | Finished[Any]:
    """Open the child of a call, or make it."""
    store = parent.store
    given: dict[str, Any] = {"store": store, "watch": parent.watch, "clock": parent.clock.clock}
    given["grace"] = parent.drain.grace
    call = ParentCall(run=state.run, uid=state.uid, call=started.call)
    found = state.find(started.call)
    tool = parent.agent.tool(found.call.tool) if found is not None else None
    assert found is not None  # decide starts only calls of this reply
    assert tool is not None  # of tools that the agent has
    if store.header(started.run) is not None:
        opened = opening.reopen(started.run, agent, by_parent=True, **given)
        if opened.state.uid != started.uid:
            if isinstance(opened, Opened):
                opened.life.end()
            raise RunExists(started.run, str(store), ("parent",))
        return opened
    values = tool.prepare(found.arguments).values or {}
    child = ChildOf(call, started.uid, state.fork_guard)
    given |= {"run": started.run, "labels": state.labels, "inputs": values.get("inputs"), "child": child}
    return opening.create(agent, values["task"], **given)
