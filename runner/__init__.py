"""runner: run an agent so that a crash at any moment loses no paid work and repeats no action in the outside world.

Declare tools with `tool`, put them in an `Agent`, `start` a run in a directory of runs, and `resume` it from any
process.
`start` and `resume` are async, `start_sync` and `resume_sync` the same for code without an event loop. They return
`Finished` or `Paused`; a stop is raised as the `RunStopped` that names its reason. Open questions are answered by
`approve`, `refuse` and `settle`; `stop` ends a run for good. `ScriptedModel` and `Recorded` are models for tests.
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
from runner._call import Call, Found, Missing, NotInACall, Unsure, current_call
from runner._clock import Clock
from runner._context import Policy, Summarise, SummariseAfter
from runner._decide import decide
from runner._keys import key
from runner._life import resume, resume_sync, start, start_sync
from runner._listing import Listed, listed, read, unfinished
from runner._model import Model, Request, ToolSpec
from runner._questions import Answer, Finished, OnQuestion, Paused, approve, refuse, settle, stop
from runner._recorded import BadRecording, Recorded, Recorder
from runner._scripted import ScriptedModel, calls
from runner._stops import (
    DollarLimit,
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
    NotStarted,
    NotStoppable,
    NoWorkspace,
    OutsideWorkspace,
    ReadOnlyWorkspace,
    RunError,
    ToolFailed,
    Unknown,
    WrongAnswer,
)

__all__ = [
    "Agent",
    "AlreadyAnswered",
    "Answer",
    "Answered",
    "BadAgent",
    "BadRecording",
    "BadTool",
    "Bound",
    "Call",
    "CannotContinue",
    "Clock",
    "DollarLimit",
    "Finished",
    "Found",
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
    "NotInACall",
    "NotStarted",
    "NotStoppable",
    "OnQuestion",
    "OutsideWorkspace",
    "Paused",
    "Policy",
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
    "calls",
    "current_call",
    "decide",
    "key",
    "listed",
    "read",
    "refuse",
    "resume",
    "resume_sync",
    "settle",
    "start",
    "start_sync",
    "stop",
    "tool",
    "unfinished",
]
