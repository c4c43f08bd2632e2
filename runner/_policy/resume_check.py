"""The opening of a life: the first line a resume writes, or why it writes none.

The count of resumes is durable before anything else happens, so a run that dies during every resume still reaches its
limit. Nothing is written for a pause without a new answer, or when the limit that stopped the run still stands: a
resume that could change nothing uses up no resume.
"""

from collections.abc import Container
from datetime import datetime

from msgspec.structs import replace

from replay import Event, State
from replay.events import LimitsChanged, RunResumed, RunStopped
from runner._agent.agent import AnyAgent
from runner._policy import approvals, request
from runner._policy import limits as _limits
from runner.errors import STOPS, BadAgent, CannotContinue, ChildRun, NotStarted, OtherAgent


def check(
    state: State, run: str, agent: AnyAgent | None = None, *, held: Container[str] = (), by_parent: bool = False
) -> None:
    """Raise when no life can carry this run on, or not one of `agent`.

    That is `NotStarted`, `OtherAgent`, `BadAgent` for inputs that it can't read, `CannotContinue` or the final stop's
    error; of one whose reason is `held`, too. A child run is carried on by whoever carries its parent on: `ChildRun`.
    """
    if state.phase == "new":
        raise NotStarted(run)
    if agent is not None and agent.name != state.agent:
        raise OtherAgent(run, state.agent, agent.name)
    if agent is not None and state.parent_call is not None and not (by_parent or state.over):
        raise ChildRun(run, state.parent_call.run)
    if agent is not None:
        agent.load_inputs(state.inputs)
        check_loop(state, agent)
    if state.unknown:
        raise CannotContinue(run, state.unknown)
    if state.stopped is not None and (state.stopped.final or state.stopped.reason in held):
        raise STOPS[state.stopped.reason](run, state.stopped.detail)


def check_loop(state: State, agent: AnyAgent) -> None:
    """Raise `BadAgent` for an agent on the run of a program with a loop of its own, or the other way round."""
    if bool(agent.framework) != bool(state.framework):
        whose = f"a program's ({state.framework})" if state.framework else "no program's"
        given = "one" if agent.framework else "an agent"
        raise BadAgent(f"run {state.run} is {whose}, and was given {given} of its name")


def waits(agent: AnyAgent, state: State, now: datetime) -> bool:
    """Whether a pause has nothing new to go on with."""
    late = state.limits.until is not None and state.limits.until <= now
    return state.phase == "paused" and not late and not approvals.paused(agent, state, now)


def resumed(
    agent: AnyAgent, state: State, *, host: str, pid: int, clock_back: bool, lease_lost: bool = False
) -> list[Event]:
    """The events of the opening line.

    Raises the stop's error when the limit that stopped the run still stands, and `BadAgent` when there is a limit in
    dollars and the ask that is due has no price.
    """
    until = agent.limits.until or state.limits.until  # a deadline stays until another one is given
    limits = replace(agent.limits, until=until)
    if state.stopped is not None and state.stopped.reason == "Deadline" and until == state.limits.until:
        raise STOPS["Deadline"](state.run, state.stopped.detail)
    if limits.dollars is not None and state.phase == "model" and state.stop is None:
        _limits.priced(agent.model.name, limits, request.bound(agent, request.build(agent, state, state.at)))
    still = _limits.exceeded(state, limits)
    if state.stopped is not None and still is not None and state.stopped.reason == still.reason:
        raise STOPS[still.reason](state.run, still.detail)
    if not state.uncounted and state.resumes >= limits.resumes:
        detail = f"{state.resumes} of {limits.resumes} resumes used"
        if state.stopped is not None and state.stopped.reason == "TooManyResumes":
            raise STOPS["TooManyResumes"](state.run, detail)
        return [RunStopped(reason="TooManyResumes", detail=detail)]
    events: list[Event] = [
        RunResumed(
            host=host,
            pid=pid,
            counted=not state.uncounted,
            clock_back=clock_back,
            definitions=agent.definitions,
            lease_lost=lease_lost,
        )
    ]
    if limits != state.limits:
        events.append(LimitsChanged(limits=limits))
    return events
