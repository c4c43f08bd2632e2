"""Preflight: before a deploy, whether the current code can carry on every unfinished run.

Each is read from its first line, without a lock, and looked at in two ways. What its log and its workspace say:
is every event known, do the files still hold what the run wrote, do the tools exist that its calls need, with
everything that protects those calls. And what a resume would do first: that is decided here as it will be there, on
the same state, and written nowhere.

An issue that `blocks` is one that the run does not get over by itself: it is refused, stops, asks a person because the
code changed, loses a protection that it had, or tells the model that a call can't be made any more. Any other is worth
knowing: drift.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

import eventlog
import replay
from replay import State
from replay.events import QuestionAsked, RunResumed
from replay.messages import AssistantMessage
from replay.values import Definitions
from runner._agent import agent_tool, workspace
from runner._agent.agent import Agent, AnyAgent
from runner._clock import Clock
from runner._policy import gates, limits, request, resume_check
from runner._policy.decide import decide
from runner._policy.pending import Pending
from runner._review import call_issues
from runner._review.call_issues import PreflightIssue
from runner._runs.listing import list_runs
from runner.errors import BadAgent, NoWorkspace, Stopped


class Preflight(msgspec.Struct, frozen=True):
    """One unfinished run, and what stands in its way or is worth knowing.

    Attributes:
        run: Its id.
        agent: The name of its agent.
        phase: The phase it is in.
        seq: Its last line.
        issues: What was found.
    """

    run: str
    agent: str
    phase: str
    seq: int
    issues: tuple[PreflightIssue, ...]

    @property
    def able(self) -> bool:
        """Whether nothing blocks."""
        return not any(issue.blocks for issue in self.issues)


AgentOf = Callable[[State], AnyAgent | None]


def preflight(
    runs: eventlog.Runs,
    agents: AnyAgent | AgentOf | Sequence[AnyAgent | AgentOf],
    *,
    clock: Clock | None = None,
) -> list[Preflight]:
    """Looks at every unfinished run, newest first. Takes no lock and writes nothing.

    A run that is done or stopped for good is left out, unless its status does not count and it can't be read.

    Args:
        runs: Where the runs are: a path, a URL, or a store.
        agents: The current agents, found by name. A function gives the one for a run's state, or None. A run that none
            of them can carry on is blocked.
        clock: The time, for tests.

    Raises:
        eventlog.NotARunsDirectory: There are no runs.
        BadAgent: Two agents have one name, or one is none.
    """
    agent_of = _by_name([agents] if isinstance(agents, Agent) or callable(agents) else agents)
    now = (clock or Clock()).wall()
    found = []
    store = eventlog.store(runs)
    for entry in list_runs(store):
        if entry.status is not None and (entry.status.closed or entry.status.phase == "new"):
            continue
        try:
            state = replay.load(store.read(entry.run).lines)
        except (eventlog.LogError, replay.ReplayError, OSError) as problem:
            unreadable = PreflightIssue("unreadable", str(problem), blocks=True)
            found.append(Preflight(entry.run, "", "", -1, (unreadable,)))
        else:
            if state.over:  # by now
                continue
            issues = tuple(_judged(state, entry.run, agent_of, now, store.lease))
            found.append(Preflight(entry.run, state.agent, state.phase, state.seq, issues))
    return found


def _by_name(agents: Any) -> AgentOf:
    def agent_of(state: State) -> AnyAgent | None:
        made = [agent(state) if callable(agent) else agent for agent in agents]
        found = [agent for agent in made if agent is not None]
        for agent in found:
            agent_tool.check(agent=agent)
        return _named(found).get(state.agent)

    _named([agent for agent in agents if not callable(agent)] if isinstance(agents, Sequence) else agents)
    return agent_of


def _named(agents: Sequence[AnyAgent]) -> dict[str, AnyAgent]:
    """These agents and those of their child runs, by name. Raises `BadAgent`."""
    agent_tool.check(agents=agents)
    if len({agent.name for agent in agents}) < len(agents):
        raise BadAgent(f"two of the agents have one name: {', '.join(agent.name for agent in agents)}")
    return agent_tool.nested(agents)


def _judged(state: State, run: str, agent_of: AgentOf, now: datetime, lease: float | None) -> Iterator[PreflightIssue]:
    """The issues of one run; a function that makes no agent for it leaves the other runs to be looked at."""
    try:
        agent = agent_of(state)
    except Exception as error:  # noqa: BLE001 (the user's function: whatever it raises is said of this run)
        says = f"the function that gives its agent raised {type(error).__name__}: {error}"
        yield PreflightIssue("no-agent", says, blocks=True)
    else:
        yield from _issues(state, run, agent, now)
        yield from _lease(agent, lease)


def _lease(agent: AnyAgent | None, lease: float | None) -> Iterator[PreflightIssue]:
    """Tools that may still act for longer than another process waits to take their run from one that was cut off."""
    if agent is None or lease is None:
        return
    long = [f"{t.name} for {t.timeout:g} s" for t in agent.tools if t.effect != "reads" and t.timeout > lease]
    if long:
        says = f"cut off, a process loses a run after {lease:g} s at most; unless it asks whether it holds the run, "
        yield PreflightIssue("lease", f"{says}{', '.join(long)} may still act", blocks=False)


def _issues(state: State, run: str, agent: AnyAgent | None, now: datetime) -> Iterator[PreflightIssue]:
    if state.unknown:
        tags = ", ".join(state.unknown)
        yield PreflightIssue("unknown-events", f"it holds events that this version does not know: {tags}", blocks=True)
    yield from _files(state)
    if agent is None:
        says = f"no agent was given for runs of {state.agent!r}; an agent that was renamed takes its old runs by a copy"
        yield PreflightIssue("no-agent", f"{says}, agent.replace(name={state.agent!r})", blocks=True)
        return
    yield from _tools(state, agent)
    yield from _policies(state, agent)
    now = max(now, state.at or now)
    yield from _limits(state, agent, now)
    for call in state.calls:
        if call.result is None:
            yield from call_issues.issues(state, agent, call)
    if not state.unknown:
        yield from _resuming(state, run, agent, now)


def _files(state: State) -> Iterator[PreflightIssue]:
    """What a resume would find in the workspace. Nothing there is touched."""
    try:
        changed = workspace.changed(state.workspace, state.files, settle=False)
    except NoWorkspace:
        yield PreflightIssue("workspace-changed", f"its workspace {state.workspace} is not there", blocks=True)
        return
    if changed:
        says = f"files hold what the run did not write: {workspace.names(changed)}"
        yield PreflightIssue("workspace-changed", says, blocks=True)


def _tools(state: State, agent: AnyAgent) -> Iterator[PreflightIssue]:
    """Tools that the run was given and that are gone or declared otherwise.

    A fork needs the name of each tool that its parent used after the line: by it, the fork guard knows a repeat.
    """
    used = {call.tool for m in state.messages[:] if isinstance(m, AssistantMessage) for call in m.reply.calls}
    used |= {effect.tool for effect in state.fork_guard}
    was, now = call_issues.declared(state), agent.definitions.tools
    for name in sorted(was):
        if name not in now:
            never = "" if name in used else ", which it never called"
            yield PreflightIssue("tool-gone", f"the current code has no tool {name}{never}", blocks=name in used)
        elif was[name] != now[name]:
            says = f"tool {name} is declared otherwise: {now[name].changes(was[name])}"
            yield PreflightIssue("definition-changed", says, blocks=False)


def _policies(state: State, agent: AnyAgent) -> Iterator[PreflightIssue]:
    """Policies and words that differ from those of the life before."""
    was: Definitions = state.definitions or agent.definitions
    for part in ("instructions", "inputs", "output", "parameters"):
        if getattr(was, part) != getattr(agent.definitions, part):
            yield PreflightIssue("definition-changed", f"the {part} changed", blocks=False)
    if was.parallel != agent.parallel:
        says = f"{agent.parallel} calls of a reply may run side by side, not {was.parallel}"
        yield PreflightIssue("policy-changed", says, blocks=False)
    if was.context != agent.definitions.context:
        says = f"the context policy is {agent.definitions.context or 'none'}, it was {was.context or 'none'}"
        yield PreflightIssue("policy-changed", says, blocks=False)
    if state.approve != agent.approve:
        asked = ", ".join(_approvals(state, agent))
        does = f"would answer {asked} in a person's stead" if agent.approve == "off" else f"would ask a person {asked}"
        says = f"approvals are {agent.approve!r}, they were {state.approve!r}{f', and {does}' if asked else ''}"
        yield PreflightIssue("policy-changed", says, blocks=bool(asked))


def _approvals(state: State, agent: AnyAgent) -> list[str]:
    """The questions whether a call may run that are open, or come before the calls that are due."""
    asked = {q.call: q.id for q in state.waiting if q.kind == "approve"}
    for call in state.calls:
        said = gates.closed(Pending(agent, state, call)) if call.result is None else None
        if isinstance(said, QuestionAsked) and said.kind == "approve":
            asked.setdefault(said.call, said.id)
    return list(asked.values())


def _limits(state: State, agent: AnyAgent, now: datetime) -> Iterator[PreflightIssue]:
    """Limits that would end the run at its next request to the model, in whatever phase it is now.

    A request without a reply is lost by then, and its bound is spent. A limit that stopped the run and still stands is
    no matter of the code.
    """
    if state.stop is not None:
        return
    new_life = RunResumed(host="", pid=0, counted=True, clock_back=False, definitions=agent.definitions)
    reached = limits.exceeded(replay.fold(state, now, [new_life]), agent.limits)
    if reached is not None and (state.stopped is None or state.stopped.reason != reached.reason):
        yield PreflightIssue("limit-reached", f"the limit is reached: {reached.detail}", blocks=True)


def _resuming(state: State, run: str, agent: AnyAgent, now: datetime) -> Iterator[PreflightIssue]:
    """What a resume would raise before it writes anything, or in the first thing it decides."""
    try:
        resume_check.check(state, run, agent, by_parent=True)
        if agent.limits.dollars is not None and state.stop is None:  # in whatever phase: the next request needs a price
            limits.priced(agent.model.name, agent.limits, request.bound(agent, request.build(agent, state, state.at)))
        if resume_check.waits(agent, state, now):
            return
        opening = resume_check.resumed(agent, state, host="", pid=0, clock_back=False)
        after = replay.fold(state, now, opening)
        decide(agent, after, now)
    except Stopped as stands:
        yield PreflightIssue("stop-stands", f"{stands.reason} stands: {stands.detail}", blocks=False)
    except Exception as error:  # noqa: BLE001 (the current code is what is judged: whatever it raises is its answer)
        yield PreflightIssue("refused", f"a resume would raise {type(error).__name__}: {error}", blocks=True)
    else:
        if after.stopped is not None:
            yield PreflightIssue("limit-reached", f"it would stop at once: {after.stopped.detail}", blocks=True)
