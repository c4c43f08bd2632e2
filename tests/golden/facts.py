"""What a history comes to: the facts that every later version must find in it again.

A later version's state may have more fields than the one that made the history, never other values in the old ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import eventlog
import replay
import runner
from replay._event import EVENTS
from runner._policy.demands import told
from tests.golden.v1 import agents

WORD_FIELDS = {kind.words for kind in EVENTS.values()}
"""The sentence in such a field may change."""


def facts(runs: Path, run: str, lives: list[str]) -> dict[str, Any]:
    """The state, the findings and the decisions of a history, and what its bytes are; `lives` are its agents."""
    lines = eventlog.store(runs).read(run).lines
    state = replay.load(lines)
    told = replay.audit(lines)
    walked = retraced(lines, lives)
    verdict = eventlog.store(runs).verify(run)
    return {
        "agents": lives,
        "state": whole(state),
        "messages": len(state.messages),
        "findings": [[finding.kind, list(finding.seqs)] for finding in told.findings],
        "decisions": walked.decisions,
        "divergence": walked.divergence.why if walked.divergence is not None else None,
        "drift": [[drift.seq, drift.part] for drift in walked.drift if drift.part not in WORD_FIELDS],
        "ok": verdict.ok,
        "sum": lines[-1].sum,
    }


def whole(state: replay.State) -> dict[str, Any]:
    """A state as plain values, without the messages: their chained digest stands for them."""
    found: dict[str, Any] = json.loads(replay.dump(state))
    del found["messages"]
    return found


def retraced(lines: list[eventlog.Line], lives: list[str]) -> replay.Retraced:
    """The history walked with the agents that made it, life by life."""
    demanded = {line.seq: told(replay.decode(raw) for raw in line.events) for line in lines}

    def decide(state: replay.State, now: Any) -> Any:
        return runner.decide(agents.agent(lives[max(state.life, 1) - 1]), state, now, demanded[state.seq + 1])

    return replay.retrace(lines, decide)


def differences(was: Any, now: Any, path: str = "$") -> list[str]:
    """Where `now` does not hold what `was` held; what it holds besides is no difference."""
    if isinstance(was, dict) and isinstance(now, dict):
        return [
            found
            for name, value in was.items()
            for found in (
                differences(value, now[name], f"{path}.{name}") if name in now else [f"{path}.{name} is gone"]
            )
        ]
    if path == "$.findings":  # a later version may find more
        return [f"{path} lacks {finding}" for finding in was if finding not in now]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [
            f for i, (old, new) in enumerate(zip(was, now, strict=True)) for f in differences(old, new, f"{path}[{i}]")
        ]
    return [] if was == now else [f"{path} was {was!r} and is {now!r}"]
