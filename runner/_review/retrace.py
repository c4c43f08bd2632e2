"""Retrace of a run: its history compared with what the current agent decides, from its log alone.

At every place where the history holds a decision, the current code decides: `decide`, the requests it builds, the
tools' declarations and the context policy. No model is asked, no tool runs, no lock is taken and nothing is written.
Every segment is read and its chain verified. Whether a person or the policy answered an approval is taken from the
history, line by line: it is an input, like every answer. So is what a program with a loop of its own waited for.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

import eventlog
import replay
from replay import Event, Retraced, State
from replay.events import QuestionAnswered
from runner._agent import agent_tool
from runner._agent.agent import AnyAgent
from runner._policy import resume_check
from runner._policy.approvals import POLICY
from runner._policy.decide import decide
from runner._policy.demands import NOTHING, Demands, told


def retrace(run: str, agent: AnyAgent, *, runs: eventlog.Runs) -> Retraced:
    """Compares the history of a run with what the current agent decides, up to the first divergence.

    The same decision from other instructions, tools, messages or parameters is drift: it is listed, no divergence.

    Args:
        run: The run.
        agent: The current agent.
        runs: Where the runs are: a path, a URL, or a store.

    Raises:
        eventlog.LogError, replay.ReplayError: The run can't be read.
        BadAgent: It is no agent. Or it is the run of a program with a loop of its own, and the agent is none, or the
            other way round.
    """
    return retrace_lines(eventlog.store(runs).read(run).lines, agent)


def retrace_lines(lines: Iterable[eventlog.Line], agent: AnyAgent) -> Retraced:
    """`retrace`, for lines that were read before."""
    agent_tool.check(agent=agent)
    lines = list(lines)
    resume_check.check_loop(replay.load(lines[:2]), agent)
    agent, split = agent.rehearsed(lines)
    walk = Walk(agent)
    found = replay.retrace(walk.along(lines), walk.decide, definitions=agent.definitions)
    if split is None or (found.divergence is not None and found.divergence.seq <= split.seq):
        return found
    return msgspec.structs.replace(found, seq=split.seq, divergence=split)


class Walk:
    """An agent that answers approvals as the history does."""

    def __init__(self, agent: AnyAgent) -> None:
        self._asks = agent.replace(approve="ask")
        self._off = agent.replace(approve="off")
        self._policy: set[int] = set()
        self._demands: dict[int, Demands] = {}

    def along(self, lines: Iterable[eventlog.Line]) -> Iterator[eventlog.Line]:
        """Yields `lines`, and notes those in which the policy answers."""
        for line in lines:
            events = [replay.decode(raw, seq=line.seq) for raw in line.events]
            if any(isinstance(event, QuestionAnswered) and event.who == POLICY for event in events):
                self._policy.add(line.seq)
            if self._asks.framework:
                self._demands[line.seq] = told(events)
            yield line

    def decide(self, state: State, now: datetime) -> Sequence[Event]:
        """What the agent decides in the line after `state`, which holds what came back."""
        agent = self._off if state.seq + 1 in self._policy else self._asks
        return decide(agent, state, now, self._demands.get(state.seq + 1, NOTHING))
