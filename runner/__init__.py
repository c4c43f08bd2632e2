"""runner: run an agent so that a crash at any moment loses no paid work and repeats no action in the outside world.

Declare tools with `tool`, put them in an `Agent`, `start` a run in a directory of runs, and `resume` it from any
process.
`start` and `resume` are async, `start_sync` and `resume_sync` the same for code without an event loop. They return
`Finished` or `Paused`; a stop is raised as the `RunStopped` that names its reason. Open questions are answered by
`approve`, `refuse` and `settle`; `stop` ends a run for good, `fork` goes on from an earlier line. `ScriptedModel` and
`Recorded` are models for tests.
`retrace`, `preflight` and `export` hold what was logged against today's agent.
"""

from replay import (
    Answered,
    Bound,
    Limits,
    Message,
    Question,
    Replied,
    Reply,
    Result,
    Said,
    State,
    Summary,
    ToolCall,
    Usage,
)
from runner._agent import Agent
from runner._audit import Audited, audit
from runner._call import Call, Found, Missing, NotInACall, Unsure, current_call
from runner._clock import Clock
from runner._context import Policy, Summarise, SummariseAfter
from runner._decide import decide
from runner._export import BadExport, CannotExport, export, retrace_export
from runner._fork import fork
from runner._guarantees import Guarantee, guarantees
from runner._keys import key
from runner._life import resume, resume_sync, start, start_sync
from runner._listing import Listed, listed, read, unfinished
from runner._masks import SECRETS, masked
from runner._model import Model, Request, ToolSpec
from runner._preflight import Hitch, Preflight, preflight
from runner._questions import Answer, Finished, OnQuestion, Paused, approve, refuse, settle, stop
from runner._recorded import BadRecording, Recorded, Recorder
from runner._retrace import retrace
from runner._scripted import ScriptedModel, calls
from runner._signals import parking
from runner._stops import (
    DollarLimit,
    Forked,
    Interrupted,
    ModelUnavailable,
    RunStopped,
    StoppedByPerson,
    TokenLimit,
    TooManyResumes,
    TurnLimit,
    WorkspaceChanged,
)
from runner._tools import Tool, tool
from runner._workspace import Workspace
from runner.errors import (
    AlreadyAnswered,
    BadAgent,
    BadTool,
    CannotContinue,
    ModelError,
    NeedsPerson,
    NoSuchQuestion,
    NotFinished,
    NotForkable,
    NotStarted,
    NotStoppable,
    NoWorkspace,
    OtherAgent,
    OutsideWorkspace,
    ReadOnlyWorkspace,
    RunError,
    ToolFailed,
    Unknown,
    WrongAnswer,
)

__all__ = [
    "SECRETS",
    "Agent",
    "AlreadyAnswered",
    "Answer",
    "Answered",
    "Audited",
    "BadAgent",
    "BadExport",
    "BadRecording",
    "BadTool",
    "Bound",
    "Call",
    "CannotContinue",
    "CannotExport",
    "Clock",
    "DollarLimit",
    "Finished",
    "Forked",
    "Found",
    "Guarantee",
    "Hitch",
    "Interrupted",
    "Limits",
    "Listed",
    "Message",
    "Missing",
    "Model",
    "ModelError",
    "ModelUnavailable",
    "NeedsPerson",
    "NoSuchQuestion",
    "NoWorkspace",
    "NotFinished",
    "NotForkable",
    "NotInACall",
    "NotStarted",
    "NotStoppable",
    "OnQuestion",
    "OtherAgent",
    "OutsideWorkspace",
    "Paused",
    "Policy",
    "Preflight",
    "Question",
    "ReadOnlyWorkspace",
    "Recorded",
    "Recorder",
    "Replied",
    "Reply",
    "Request",
    "Result",
    "RunError",
    "RunStopped",
    "Said",
    "ScriptedModel",
    "State",
    "StoppedByPerson",
    "Summarise",
    "SummariseAfter",
    "Summary",
    "TokenLimit",
    "TooManyResumes",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "ToolSpec",
    "TurnLimit",
    "Unknown",
    "Unsure",
    "Usage",
    "Workspace",
    "WorkspaceChanged",
    "WrongAnswer",
    "approve",
    "audit",
    "calls",
    "current_call",
    "decide",
    "export",
    "fork",
    "guarantees",
    "key",
    "listed",
    "masked",
    "parking",
    "preflight",
    "read",
    "refuse",
    "resume",
    "resume_sync",
    "retrace",
    "retrace_export",
    "settle",
    "start",
    "start_sync",
    "stop",
    "tool",
    "unfinished",
]
