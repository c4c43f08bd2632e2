"""runner: run an agent so that a crash at any moment loses no paid work and repeats no action outside.

Declare tools with `tool`, put them in an `Agent`, `start` a run, and `resume` it from any process. Both are async;
`start_sync` and `resume_sync` do the same without an event loop. They return an `Outcome`, `Finished`, `Paused` or
`Waiting`, and raise the `Stopped` that names why a run goes no further. `approve`, `refuse` and `settle` answer
questions; `stop` ends a run for good; `fork` goes on from an earlier line.

`runner.errors` has every error, `runner.review` compares logs with the current code, `runner.testing` has models and
crash tests. The types of messages are in `replay.messages`.
"""

import importlib
from typing import TYPE_CHECKING, Any

import runner._siblings  # noqa: F401 (first: another package of the same name fails here, with a sentence)

# isort: split
from eventlog import BadRunId, DiskFull, LogDamaged, NoSuchRun, RunExists, RunLocked
from replay import Question, State
from replay.messages import CostBound, Image, Reply, ToolCall, Usage
from replay.values import Effect, Limits
from runner import errors
from runner._agent.agent import Agent
from runner._agent.agent_tool import as_tool
from runner._agent.call import Call, Found, Missing, Unsure, current_call
from runner._agent.context import DropResults, KeepLast, Policy, Summarise, SummariseAfter, TokenBudget, Trim
from runner._agent.declaration import ToolOptions
from runner._agent.keys import key
from runner._agent.model import Model, Request
from runner._agent.tools import FunctionTool, Tool, tool
from runner._agent.workspace import Workspace
from runner._clock import Clock
from runner._engine.lifecycle import resume, resume_sync, start, start_sync
from runner._engine.signals import draining
from runner._policy.decide import decide
from runner._runs.load import compact
from runner._runs.posting import Receipt, approve, edit, park, refuse, respond, settle, stop
from runner._runs.questions import Answer, Finished, OnQuestion, Outcome, Paused, Waiting
from runner._runs.say import allow, send
from runner._runs.status import RunStatus
from runner.errors import (
    BadAgent,
    BadTool,
    ModelError,
    NeedsDecision,
    NeedsPerson,
    OutcomeUnknown,
    RunError,
    StillWaiting,
    Stopped,
    ToolFailed,
)

if TYPE_CHECKING:
    from runner import review
    from runner._durable.opening import durable
    from runner._durable.program import durable_main
    from runner._engine.stream import stream
    from runner._runs.fork import fork
    from runner._runs.listing import RunInfo, list_runs, list_unfinished, read_state
    from runner._service.attach import enqueue, run, run_sync
    from runner._service.handle import Run
    from runner._service.worker import Worker
else:
    _LATER = {
        "runner._durable.opening": ("durable",),
        "runner._durable.program": ("durable_main",),
        "runner._engine.stream": ("stream",),
        "runner._runs.fork": ("fork",),
        "runner._runs.listing": ("RunInfo", "list_runs", "list_unfinished", "read_state"),
        "runner._service.attach": ("enqueue", "run", "run_sync"),
        "runner._service.handle": ("Run",),
        "runner._service.worker": ("Worker",),
    }

    def __getattr__(name: str) -> Any:
        """What only some programs use is imported when it is named: reviews, workers, loops that are not ours."""
        if name == "review":
            return importlib.import_module("runner.review")
        for module, names in _LATER.items():
            if name in names:
                return globals().setdefault(name, getattr(importlib.import_module(module), name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Agent",
    "Answer",
    "BadAgent",
    "BadRunId",
    "BadTool",
    "Call",
    "Clock",
    "CostBound",
    "DiskFull",
    "DropResults",
    "Effect",
    "Finished",
    "Found",
    "FunctionTool",
    "Image",
    "KeepLast",
    "Limits",
    "LogDamaged",
    "Missing",
    "Model",
    "ModelError",
    "NeedsDecision",
    "NeedsPerson",
    "NoSuchRun",
    "OnQuestion",
    "Outcome",
    "OutcomeUnknown",
    "Paused",
    "Policy",
    "Question",
    "Receipt",
    "Reply",
    "Request",
    "Run",
    "RunError",
    "RunExists",
    "RunInfo",
    "RunLocked",
    "RunStatus",
    "State",
    "StillWaiting",
    "Stopped",
    "Summarise",
    "SummariseAfter",
    "TokenBudget",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "ToolOptions",
    "Trim",
    "Unsure",
    "Usage",
    "Waiting",
    "Worker",
    "Workspace",
    "allow",
    "approve",
    "as_tool",
    "compact",
    "current_call",
    "decide",
    "draining",
    "durable",
    "durable_main",
    "edit",
    "enqueue",
    "errors",
    "fork",
    "key",
    "list_runs",
    "list_unfinished",
    "park",
    "read_state",
    "refuse",
    "respond",
    "resume",
    "resume_sync",
    "review",
    "run",
    "run_sync",
    "send",
    "settle",
    "start",
    "start_sync",
    "stop",
    "stream",
    "tool",
]
