"""What can go wrong in a run, and what a tool or a model may say of its own attempt. A pause is no error."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from runner import _stops

if TYPE_CHECKING:
    from dataclasses import KW_ONLY

RunError = _stops.RunError
Stopped = _stops.Stopped
TurnLimit = _stops.TurnLimit
TokenLimit = _stops.TokenLimit
DollarLimit = _stops.DollarLimit
Deadline = _stops.Deadline
TooManyResumes = _stops.TooManyResumes
WorkspaceChanged = _stops.WorkspaceChanged
ModelUnavailable = _stops.ModelUnavailable
ConversationRefused = _stops.ConversationRefused
EmptyReply = _stops.EmptyReply
OutputInvalid = _stops.OutputInvalid
Interrupted = _stops.Interrupted
Parked = _stops.Parked
StoppedByPerson = _stops.StoppedByPerson
Forked = _stops.Forked
ParentClosed = _stops.ParentClosed
ChildRun = _stops.ChildRun
StepFailed = _stops.StepFailed
STOPS = _stops.STOPS


class ToolFailed(RunError):
    """Raised by a tool that is certain that *this attempt* did nothing. `raw` are a framework's own words.

    `retry_after`: seconds after which another attempt is worth making; None means that trying again is pointless.
    """

    sentence = "{why}"
    hint = "The model reads the reason as the call's result."
    why: str
    retry_after: float | None = None
    raw: str = ""


class OutcomeUnknown(RunError):
    """Raised by a tool that can't tell whether this attempt acted. `retry_after`: seconds the service asked for."""

    sentence = "{why}"
    hint = "The ladder settles it: run again if harmless, else ask the service, else ask a person."
    why: str
    retry_after: float | None = None


class NeedsPerson(OutcomeUnknown):
    """Raised by a tool whose service wants an answer from a person: `why` is what it asks.

    The ladder's first rungs are skipped, since a repeat would only be asked the same. A person settles the call: a
    `rerun` may carry the answer, which the next attempts find in `Call.operator_note`. A `why` that begins as `FORM` is
    answered by a JSON object or by `decline`, and by nothing else.
    """

    FORM: ClassVar[re.Pattern[str]] = re.compile(r"\[forms?((?: [0-9a-f]{16})+)\] ")
    hint = "A person settles it: `refold settle RUN QUESTION rerun --answer TEXT`, or `done --found TEXT`."


class ModelError(RunError):
    """Raised by a model whose ask came to nothing.

    `transient`: asking again may help. `billed`: tokens may have been spent, so the ask's bound counts. `retry_after`:
    seconds that the provider asked for. `refused_conversation`: the messages were refused for good, and nothing else.
    """

    sentence = "{why}"
    hint = "A transient failure is retried up to five times in a row; any other stops the run."
    why: str
    _: "KW_ONLY"
    transient: bool = True
    billed: bool = False
    retry_after: float | None = None
    refused_conversation: bool = False


class BadTool(RunError):
    """A function that can't be a tool as it is declared."""

    sentence = "{tool} can't be a tool: {why}"
    hint = "Change the declaration; `runner.tool` says what each option means."
    tool: str
    why: str


class BadAgent(RunError):
    """An agent or a start that can't work as given."""

    sentence = "{why}"
    hint = "Change what is passed to `runner.Agent` or `runner.start`."
    why: str


class InsideEventLoop(RunError):
    """A `_sync` function was called where an event loop is running: it would block that loop."""

    sentence = "{function}_sync was called inside a running event loop"
    hint = "Use `await runner.{function}(...)`."
    function: str


class WorkerLeft(RunError):
    """`Worker.start` was called while the worker leaves or after that; or it was entered then, or a second time."""

    sentence = "the worker is leaving, or was entered before, and starts no run"
    hint = "Use another worker, or `runner.enqueue`."


class NotStarted(RunError):
    """The log holds no `run_started`: there is nothing to carry on."""

    sentence = "{run} was created but never started"
    hint = "Start a run of another name."
    run: str


class NotFinished(RunError):
    """A run that is not done can't be continued in a new one."""

    sentence = "{run} is not done, it is in phase {phase}"
    hint = "Resume it first."
    run: str
    phase: str


class CannotContinue(RunError):
    """The log holds events of a later version: this version can read the run, but not carry it on."""

    sentence = "{run} holds events this version does not know: {tags}"
    hint = "Resume with the version that wrote it, or a later one."
    run: str
    tags: tuple[str, ...]


class OtherAgent(RunError):
    """The run was begun by an agent of another name: with this one's tools its calls would mean something else."""

    sentence = "{run} is a run of agent {began!r}, not of {given!r}"
    hint = "Resume it with its own agent; one that was given a new name resumes it as `agent.replace(name={began!r})`."
    run: str
    began: str
    given: str


class NeedsDecision(RunError):
    """`finished()` was asked of a run that waits for a person; `questions` are the ids of what is open."""

    sentence = "{run} waits for a person to answer {questions}"
    hint = "Answer with `runner.approve`, `refuse` or `settle`, or pass `on_question=`; then resume it."
    run: str
    questions: tuple[str, ...]


class StillWaiting(RunError):
    """`finished()` was asked of a run that waits for a time; `until` is when it goes on (UTC)."""

    sentence = "{run} waits until {until}"
    hint = "Resume it then."
    run: str
    until: datetime


class NoSuchQuestion(RunError):
    """Nobody asked that."""

    sentence = "{run} has no question {question}"
    hint = "`refold show RUN` lists the open questions with their ids."
    run: str
    question: str


class AlreadyAnswered(RunError):
    """The question was answered before, and the first answer wins."""

    sentence = "question {question} of {run} was answered before: {answer}, by {who}"
    hint = "The first answer counts, and nothing was changed; `refold audit RUN` tells what came of it."
    run: str
    question: str
    who: str
    answer: str


class BadRule(RunError):
    """A standing rule that no call could meet."""

    sentence = "a rule of {run} can't be used: {why}"
    hint = "Name a tool of the run's agent, and give the values of arguments as JSON."
    run: str
    why: str


class WrongAnswer(RunError):
    """An answer of one kind to a question of the other."""

    sentence = "{answer} does not answer question {question} of {run}, which is of kind {kind}"
    hint = "approve, refuse, edit and respond answer approvals; settle answers what the ladder asks."
    run: str
    question: str
    kind: str
    answer: str


class UnusableAnswer(RunError):
    """An answer to a server's form that is neither a JSON object nor `decline`: the server would ask the same again."""

    sentence = "the answer to {question} of {run} can't be used: {why}"
    hint = "Give the JSON object with the fields that the question names, or `decline`."
    run: str
    question: str
    why: str


class NoName(RunError):
    """A decision was given in nobody's name, or in that of the policy which approves when nobody is asked."""

    sentence = "{what} needs the name of who decides"
    hint = "Give a name that a reader of the log will know, and that does not begin with `policy:`."
    what: str


class NotStoppable(RunError):
    """A run that can't be stopped or parked: it is done, or somebody else was first."""

    sentence = "{run} can't be stopped or parked: {why}"
    hint = "Nothing was changed."
    run: str
    why: str


class RequestRefused(RunError):
    """The run did not take a request."""

    sentence = "{run} did not take {request}: {why}"
    hint = "Nothing was changed; `refold show RUN` says where it stands."
    run: str
    request: str
    why: str


class NotSendable(RunError):
    """A message that a run can't take."""

    sentence = "{run} takes no message: {why}"
    hint = "Nothing was changed."
    run: str
    why: str


class NotForkable(RunError):
    """A run that can't be forked at this line."""

    sentence = "{run} can't be forked at line {seq!r}: {why}"
    hint = "Nothing was changed. Remove what prevents it, or fork the run at another line."
    run: str
    seq: int
    why: str


class NotInACall(RunError):
    """`current_call()` was asked outside of a tool."""

    sentence = "no call is running here"
    hint = "Call it in a tool or a lookup, in the same task or thread (or one that carries the context)."


class NoWorkspace(RunError):
    """The run has no workspace, or its directory can't be one."""

    hint = "Pass `workspace=` to `start`; to `resume` too if it was moved, or `--workspace DIR`."
    path: str | None
    why: str = "it is not a directory"

    def __str__(self) -> str:
        return "this run has no workspace" if self.path is None else f"the workspace {self.path}: {self.why}"


class OutsideWorkspace(RunError):
    """A path that leaves the workspace, or goes through a link."""

    sentence = "{path!r} is not a path inside the workspace: {why}"
    hint = "Use a relative path with forward slashes, inside the workspace."
    path: str
    why: str


class ReadOnlyWorkspace(RunError):
    """A write where only reading is allowed: in a `reads` tool, in a lookup, or after the run was parked."""

    sentence = "{path!r} was not written: {why}"
    hint = "Declare the tool's effect as what a repeat of its write does."
    path: str
    why: str
