"""Preflight: before a deploy, which unfinished runs today's code can carry on (spec rows 20, 23; hazard 33).

Each run is read without a lock and looked at in two ways. What its log and its workspace say: is every event known, do
the files still hold what the run wrote, do the tools that its open calls need exist, declared as they were. And what a
resume would write first, which is decided here as it will be there, on the same state, and written nowhere.

A *hitch* that `blocks` is one that the run would not get over by itself as it would have under the code that ran it: it
is refused, stops, asks a person because the code changed, or tells the model that a call can't be made any more. Any
other is worth knowing: drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

import replay
from replay import CallState, Definitions, Replied, State
from runner import _limits, _opening, _workspace
from runner._agent import Agent
from runner._clock import Clock
from runner._decide import decide
from runner._listing import listed
from runner._stops import RunStopped

Kind = Literal[
    "unreadable",
    "unknown-events",
    "workspace-changed",
    "tool-gone",
    "effect-changed",
    "schema-changed",
    "policy-changed",
    "refused",
    "definition-changed",
    "stop-stands",
    "not-checked",
]


class Hitch(msgspec.Struct, frozen=True):
    """What today's code meets in a run: its kind, a sentence, the call it concerns, and whether it `blocks`."""

    kind: Kind
    says: str
    blocks: bool
    call: str | None = None


class Preflight(msgspec.Struct, frozen=True):
    """One unfinished run: whether today's code can go on with it, and what stands in the way or is worth knowing."""

    run: str
    agent: str
    phase: str
    seq: int
    hitches: tuple[Hitch, ...]

    @property
    def able(self) -> bool:
        """Whether nothing blocks."""
        return not any(hitch.blocks for hitch in self.hitches)


Whose = Callable[[State], Agent | None]


def preflight(runs: str | Path, agent: Agent | Whose, *, clock: Clock | None = None) -> list[Preflight]:
    """Every unfinished run of a directory, newest first, and whether today's code can go on with it.

    `agent`   the agent whose runs are meant; or a function that gives today's agent of a run, None where there is none
    `clock`   what time it is (for tests): a key may be forgotten by now

    A run that is done or stopped for good has nothing left to go on with. One of another agent is left out; one that
    can't be read is not. Takes no lock and writes nothing. Raises `eventlog.NotARunsDirectory`.
    """
    now = (clock or Clock()).wall()
    found = []
    for entry in listed(runs):
        if entry.state is None:
            found.append(Preflight(entry.run, "", "", -1, (Hitch("unreadable", str(entry.problem), blocks=True),)))
        elif _is_unfinished(entry.state) and not (isinstance(agent, Agent) and entry.state.agent != agent.name):
            todays = agent if isinstance(agent, Agent) else agent(entry.state)
            hitches = tuple(_hitches(entry.state, entry.run, todays, now))
            found.append(Preflight(entry.run, entry.state.agent, entry.state.phase, entry.state.seq, hitches))
    return found


def _is_unfinished(state: State) -> bool:
    return state.phase not in ("new", "done") and not (state.stopped is not None and state.stopped.final)


def _hitches(state: State, run: str, agent: Agent | None, now: datetime) -> Iterator[Hitch]:
    if state.unknown:
        tags = ", ".join(state.unknown)
        yield Hitch("unknown-events", f"it holds events that this version does not know: {tags}", blocks=True)
    yield from _files(state)
    if agent is None:
        says = f"today's agent {state.agent!r} was not given, so only its log and workspace were looked at"
        yield Hitch("not-checked", says, blocks=False)
        return
    yield from _tools(state, agent)
    yield from _policies(state, agent)
    for call in state.calls:
        if call.result is None:
            yield from _pending(state, agent, call)
    if not state.unknown:
        yield from _resuming(state, run, agent, max(now, state.at or now))


def _files(state: State) -> Iterator[Hitch]:
    """What a resume would find in the workspace (spec row 5); nothing there is touched."""
    if not state.files:
        return
    root = Path(state.workspace or "")
    if state.workspace is None or not root.is_dir():
        yield Hitch("workspace-changed", f"its workspace {state.workspace} is not there", blocks=True)
        return
    now = {path: _workspace.hash_file(root / path) for path in state.files}
    changed = [f"{p} ({'gone' if now[p] is None else 'changed'})" for p in state.files if now[p] not in state.files[p]]
    if changed:
        yield Hitch("workspace-changed", f"files hold what the run did not write: {', '.join(changed)}", blocks=True)


def _tools(state: State, agent: Agent) -> Iterator[Hitch]:
    """Tools that the run was given and that are gone or declared otherwise."""
    used = {call.tool for m in state.messages[:] if isinstance(m, Replied) for call in m.reply.calls}
    was, now = _declared(state), agent.definitions.tools
    for name in sorted(was):
        if name not in now:
            never = "" if name in used else ", which it never called"
            yield Hitch("tool-gone", f"today's code has no tool {name}{never}", blocks=name in used)
        elif was[name] != now[name]:
            parts = "its words, arguments, effect, retention or once_per"
            yield Hitch("definition-changed", f"tool {name} is declared otherwise: {parts}", blocks=False)


def _declared(state: State) -> dict[str, str]:
    return state.definitions.tools if state.definitions is not None else {}


def _policies(state: State, agent: Agent) -> Iterator[Hitch]:
    """Policies and words that differ from those of the life before."""
    was: Definitions = state.definitions or agent.definitions
    for part in ("instructions", "parameters"):
        if getattr(was, part) != getattr(agent.definitions, part):
            yield Hitch("definition-changed", f"the {part} are others", blocks=False)
    if was.context != agent.definitions.context:
        says = f"the context policy is {agent.definitions.context or 'none'}, it was {was.context or 'none'}"
        yield Hitch("policy-changed", says, blocks=False)
    if state.approve != agent.approve:
        asked = ", ".join(q.id for q in state.waiting if q.kind == "approve")
        waits = f", and would answer {asked} in a person's stead" if asked and agent.approve == "off" else ""
        says = f"approvals are {agent.approve!r}, they were {state.approve!r}{waits}"
        yield Hitch("policy-changed", says, blocks=bool(waits))
    reached = _limits.exceeded(state, agent.limits)
    if reached is not None and state.stopped is None and _limits.exceeded(state, state.limits) is None:
        yield Hitch("policy-changed", f"today's limit is reached already: {reached.detail}", blocks=True)


def _pending(state: State, agent: Agent, call: CallState) -> Iterator[Hitch]:
    """A call without a result, against today's tool."""
    name, was = call.call.tool, _declared(state).get(call.call.tool)
    tool = agent.tool(name)
    if tool is None:
        if was is not None:  # else the model made the name up, and the call was invalid all along
            comes = "it may have happened, and a person would be asked" if call.open else "it would not run"
            yield Hitch("tool-gone", f"call {call.call.id} is of {name}: {comes}", blocks=True, call=call.call.id)
        return
    if call.attempts and call.attempts[-1].effect != tool.effect:
        says = f"call {call.call.id} of {name} was marked as {call.attempts[-1].effect}, today's tool is {tool.effect}"
        yield Hitch("effect-changed", says, blocks=call.open, call=call.call.id)
    problem = tool.problem(call.call.arguments)
    if problem is not None and was != agent.definitions.tools[name]:
        says = f"today's {name} can't take the arguments of call {call.call.id}: {problem}"
        yield Hitch("schema-changed", says, blocks=True, call=call.call.id)


def _resuming(state: State, run: str, agent: Agent, now: datetime) -> Iterator[Hitch]:
    """What a resume would raise before it writes anything, or in the first thing it decides."""
    try:
        _opening.check(state, run, agent)
        if _opening.waits(agent, state):
            return
        opening = _opening.resumed(agent, state, host="", pid=0, clock_back=False)
        after = replay.fold(state, now, opening)
        decide(agent, after, now)
    except RunStopped as stands:
        yield Hitch("stop-stands", f"{stands.reason} stands: {stands.detail}", blocks=False)
    except Exception as error:  # noqa: BLE001 (today's code is what is on trial: whatever it raises is its answer)
        yield Hitch("refused", f"a resume would raise {type(error).__name__}: {error}", blocks=True)
    else:
        if after.stopped is not None:
            yield Hitch("stop-stands", f"it would stop at once: {after.stopped.detail}", blocks=False)
