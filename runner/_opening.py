"""The opening of a life: the first line a resume writes, or why it writes none. Pure.

The count of resumes is durable before anything else happens, so a run that dies during every resume still reaches its
limit (spec row 4). Nothing is written for a pause without a new answer, or when the limit that stopped the run still
stands: looking does not wear a run out.
"""

from __future__ import annotations

from replay import Event, LimitsChanged, RunResumed, RunStopped, State
from runner import _limits
from runner._agent import Agent
from runner._decide import request
from runner._stops import STOPS
from runner.errors import CannotContinue, NotStarted, OtherAgent


def check(state: State, run: str, agent: Agent | None = None) -> None:
    """Raise when no life can carry this run on, or not one of `agent`.

    That is `NotStarted`, `OtherAgent`, `CannotContinue` or the final stop's error.
    """
    if state.phase == "new":
        raise NotStarted(run)
    if agent is not None and agent.name != state.agent:
        raise OtherAgent(run, state.agent, agent.name)
    if state.unknown:
        raise CannotContinue(run, state.unknown)
    if state.stopped is not None and state.stopped.final:
        raise STOPS[state.stopped.reason](run, state.stopped.detail)


def waits(agent: Agent, state: State) -> bool:
    """Whether a pause has nothing new to go on with."""
    if state.phase != "paused" or not state.waiting:
        return False
    return not (agent.approve == "off" and any(q.kind == "approve" for q in state.waiting))


def resumed(agent: Agent, state: State, *, host: str, pid: int, clock_back: bool) -> list[Event]:
    """The events of the opening line.

    Raises the stop's error when the limit that stopped the run still stands, and `BadAgent` when there is a limit in
    dollars and the ask that is due has no price.
    """
    limits = agent.limits
    if limits.dollars is not None and state.phase == "model" and state.stop is None:
        _limits.priced(agent.model.name, limits, agent.model.bound(request(agent, state, state.at)))
    still = _limits.exceeded(state, limits)
    if state.stopped is not None and still is not None and state.stopped.reason == still.reason:
        raise STOPS[still.reason](state.run, still.detail)
    if not state.answered and state.resumes >= limits.resumes:
        detail = f"{state.resumes} of {limits.resumes} resumes used"
        if state.stopped is not None and state.stopped.reason == "TooManyResumes":
            raise STOPS["TooManyResumes"](state.run, detail)
        return [RunStopped(reason="TooManyResumes", detail=detail)]
    events: list[Event] = [
        RunResumed(host=host, pid=pid, counted=not state.answered, clock_back=clock_back, definitions=agent.definitions)
    ]
    if limits != state.limits:
        events.append(LimitsChanged(limits=limits))
    return events
