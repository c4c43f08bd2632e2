"""Retrace a run: its history through today's agent, from its log alone (spec row 28).

Today's `decide`, request builder, tool declarations and context policy are asked at every place where the history holds
a decision. No model is asked, no tool runs, no lock is taken and nothing is written; every segment is read and its
chain verified. Whether approvals were put to a person or answered by the policy is taken from the history line by line:
that is the word of whoever started that life, an input like every answer (row 25).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

import eventlog
import replay
from replay import Event, QuestionAnswered, Retraced, State
from runner._agent import Agent
from runner._approvals import POLICY
from runner._decide import decide


def retrace(run: str, agent: Agent, *, runs: str | Path) -> Retraced:
    """Walk the history of `run` with today's `agent`, to its end or to the first divergence.

    Drift (the same decision from other instructions, tools, messages or parameters) is listed and is no divergence.

    Raises `eventlog.NoSuchRun`, `eventlog.LogDamaged`, and `replay.ReplayError` for a history that can't be folded.
    """
    return retrace_lines(eventlog.read(Path(runs), run).lines, agent)


def retrace_lines(lines: Iterable[eventlog.Line], agent: Agent) -> Retraced:
    """`retrace`, for lines that are at hand."""
    walk = Walk(agent)
    return replay.retrace(walk.along(lines), walk.decide, definitions=agent.definitions)


class Walk:
    """An agent that answers approvals as the history does."""

    def __init__(self, agent: Agent) -> None:
        self._asks = agent.replace(approve="ask")
        self._off = agent.replace(approve="off")
        self._policy: set[int] = set()

    def along(self, lines: Iterable[eventlog.Line]) -> Iterator[eventlog.Line]:
        """`lines`, while noting those in which the policy answers."""
        for line in lines:
            if any(_answered_by_policy(raw, line.seq) for raw in line.events):
                self._policy.add(line.seq)
            yield line

    def decide(self, state: State, now: datetime) -> Sequence[Event]:
        """What the agent decides in the line behind `state`, which has what came back folded."""
        return decide(self._off if state.seq + 1 in self._policy else self._asks, state, now)


def _answered_by_policy(raw: msgspec.Raw, seq: int) -> bool:
    if b'"question_answered"' not in memoryview(raw).tobytes():
        return False
    event = replay.decode(raw, seq=seq)
    return isinstance(event, QuestionAnswered) and event.who == POLICY
