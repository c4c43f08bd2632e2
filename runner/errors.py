"""What can go wrong in a run, and what a tool may say about its own attempt.

    RunError
    ├── ToolFailed           raised by a tool: this attempt certainly did nothing
    ├── Unknown              raised by a tool: this attempt may have acted
    │   └── NeedsPerson      and a person must answer something before another can go on
    ├── ModelError           raised by a model: this ask came to nothing
    ├── BadTool, BadAgent    a declaration that can't be used
    ├── NotStarted, NotFinished, CannotContinue, NotStoppable, NotForkable    a run that can't be treated as asked
    ├── OtherAgent           a run that another agent began
    ├── NoSuchQuestion, AlreadyAnswered, WrongAnswer
    ├── NoWorkspace, OutsideWorkspace, ReadOnlyWorkspace
    └── RunStopped           the run stopped and its log says so: `runner._stops`

A pause is no error: `start` and `resume` return it. Errors of the log itself are `eventlog.LogError`.
"""

from __future__ import annotations


class RunError(Exception):
    """The root of runner's errors: data as arguments, a sentence as its text, and a `hint`."""

    hint = ""


class ToolFailed(RunError):
    """Raised by a tool that is certain that *this attempt* did nothing (spec row 22).

    `retry_after`: seconds after which another attempt is worth making; None means that trying again is pointless.
    """

    hint = "The model reads the reason as the call's result."

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why, retry_after)
        self.why = why
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.why


class Unknown(RunError):
    """Raised by a tool that can't tell whether this attempt acted: the call stays open (spec row 22).

    `retry_after`: seconds the service asked to be left alone, if it did.
    """

    hint = "The ladder settles it: run again if harmless, else ask the service, else ask a person."

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why, retry_after)
        self.why = why
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.why


class NeedsPerson(Unknown):
    """Raised by a tool whose service wants an answer from a person: `why` is what it asks (spec row 23).

    The ladder's first rungs are skipped, since a repeat would only be asked the same. A person settles the call: a
    `rerun` may carry the answer, which the next attempts find in `Call.told`.
    """

    hint = "A person settles it: `refold settle RUN QUESTION rerun --answer TEXT`, or `done --found TEXT`."


class ModelError(RunError):
    """Raised by a model whose ask came to nothing.

    `transient`: asking again may help. `billed`: tokens may have been spent, so the ask's bound counts as spent.
    `retry_after`: seconds the provider asked to be left alone.
    """

    hint = "A transient failure is retried up to five times in a row; any other stops the run."

    def __init__(
        self, why: str, *, transient: bool = True, billed: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(why)
        self.why = why
        self.transient = transient
        self.billed = billed
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return _model_error, (self.why, self.transient, self.billed, self.retry_after)


def _model_error(why: str, transient: bool, billed: bool, retry_after: float | None) -> ModelError:  # noqa: FBT001 (pickle passes by position)
    return ModelError(why, transient=transient, billed=billed, retry_after=retry_after)


class BadTool(RunError):
    """A function that can't be a tool as it is declared."""

    hint = "Change the declaration; `runner.tool` says what each option means."

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(tool, why)
        self.tool = tool
        self.why = why

    def __str__(self) -> str:
        return f"{self.tool} can't be a tool: {self.why}"


class BadAgent(RunError):
    """An agent or a start that can't work as given."""

    hint = "Change what is passed to `runner.Agent` or `runner.start`."


class NotStarted(RunError):
    """The log holds no `run_started`: there is nothing to carry on."""

    hint = "Start a new run; this directory can be removed."

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.run = run

    def __str__(self) -> str:
        return f"{self.run} was created but never started"


class NotFinished(RunError):
    """A run that is not done can't be continued in a new one."""

    hint = "Resume it first."

    def __init__(self, run: str, phase: str) -> None:
        super().__init__(run, phase)
        self.run = run
        self.phase = phase

    def __str__(self) -> str:
        return f"{self.run} is not done, it is in phase {self.phase}"


class CannotContinue(RunError):
    """The log holds events of a later version: this version can read the run, but not carry it on."""

    hint = "Resume with the version that wrote it, or a later one."

    def __init__(self, run: str, tags: tuple[str, ...]) -> None:
        super().__init__(run, tags)
        self.run = run
        self.tags = tags

    def __str__(self) -> str:
        return f"{self.run} holds events this version does not know: {', '.join(self.tags)}"


class OtherAgent(RunError):
    """The run was begun by an agent of another name: with this one's tools its calls would mean something else."""

    hint = "Resume it with its own agent; one that was given a new name resumes it as `agent.replace(name=...)`."

    def __init__(self, run: str, began: str, given: str) -> None:
        super().__init__(run, began, given)
        self.run = run
        self.began = began
        self.given = given

    def __str__(self) -> str:
        return f"{self.run} is a run of agent {self.began!r}, not of {self.given!r}"


class NoSuchQuestion(RunError):
    """Nobody asked that."""

    hint = "`refold show RUN` lists the open questions with their ids."

    def __init__(self, run: str, question: str) -> None:
        super().__init__(run, question)
        self.run = run
        self.question = question

    def __str__(self) -> str:
        return f"{self.run} has no question {self.question}"


class AlreadyAnswered(RunError):
    """The first answer wins (spec row 25)."""

    hint = "Nothing was changed; `refold cat RUN` shows who answered and when."

    def __init__(self, run: str, question: str, who: str, answer: str) -> None:
        super().__init__(run, question, who, answer)
        self.run = run
        self.question = question
        self.who = who
        self.answer = answer

    def __str__(self) -> str:
        return f"question {self.question} of {self.run} was answered before: {self.answer}, by {self.who}"


class WrongAnswer(RunError):
    """An answer of one kind to a question of the other (spec row 25)."""

    hint = "approve and refuse answer approvals; settle answers what the ladder asks."

    def __init__(self, run: str, question: str, kind: str, answer: str) -> None:
        super().__init__(run, question, kind, answer)
        self.run = run
        self.question = question
        self.kind = kind
        self.answer = answer

    def __str__(self) -> str:
        return f"{self.answer} does not answer question {self.question} of {self.run}, which is of kind {self.kind}"


class NotStoppable(RunError):
    """A run that is done, or was stopped for good before."""

    hint = "Nothing was changed."

    def __init__(self, run: str, why: str) -> None:
        super().__init__(run, why)
        self.run = run
        self.why = why

    def __str__(self) -> str:
        return f"{self.run} can't be stopped: {self.why}"


class NotForkable(RunError):
    """A run that can't be forked at this line."""

    hint = "Nothing was changed. See to what stands in the way, or fork it at another line."

    def __init__(self, run: str, seq: int, why: str) -> None:
        super().__init__(run, seq, why)
        self.run = run
        self.seq = seq
        self.why = why

    def __str__(self) -> str:
        return f"{self.run} can't be forked at line {self.seq}: {self.why}"


class NoWorkspace(RunError):
    """The run has no workspace, or its directory is gone."""

    hint = "Pass `workspace=` to `start`; a resume needs the directory where it was."

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return "this run has no workspace" if self.path is None else f"the workspace {self.path} is not a directory"


class OutsideWorkspace(RunError):
    """A path that leaves the workspace, or goes through a link."""

    hint = "Use a relative path with forward slashes, inside the workspace."

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path!r} is not a path inside the workspace: {self.why}"


class ReadOnlyWorkspace(RunError):
    """A write where only reading is allowed: in a `reads` tool, in a lookup, or after the run was parked."""

    hint = "Declare the tool's effect as what a repeat of its write does."

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path!r} was not written: {self.why}"
