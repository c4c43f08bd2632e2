"""The root of runner's errors, and what a log calls a stop. `runner.errors` offers all of them."""

from eventlog.errors import StructuredError
from runner._urls import bare_urls


class RunError(StructuredError):
    """The root of runner's errors: facts as fields, a sentence as its text, and a `hint`."""

    def __str__(self) -> str:
        """Say what is true now, without the keys that a URL may hold."""
        return bare_urls(super().__str__())


class ChildRun(RunError):
    """A child run was to be carried on, or forked, by itself: only whoever carries its parent on does that."""

    sentence = "{run} is a child of {parent}, and is carried on with it"
    hint = (
        "Resume, or fork, the parent. Questions of the child can be answered, and it can be stopped, by its own name."
    )
    run: str
    parent: str


class StepFailed(RunError):
    """A step of a program raised an error of another type than Python's own. `why` is its text, with its type."""

    sentence = "step {name} failed: {why}"
    hint = "The program may catch it and go on; when it ends with it, the next life tries the step again."
    name: str
    why: str


class Stopped(RunError):
    """The run stopped and its log says so. `reason` is the class's name; `detail` says more."""

    hint = "Resume it."
    run: str
    detail: str = ""

    @property
    def reason(self) -> str:
        """The word that the log holds for this stop."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.run} stopped ({self.reason})" + (f": {self.detail}" if self.detail else "")


class TurnLimit(Stopped):
    """The run used its turns."""

    hint = "Resume it with a higher limit of turns."


class TokenLimit(Stopped):
    """The run used its tokens."""

    hint = "Resume it with a higher limit of tokens."


class DollarLimit(Stopped):
    """The run used its dollars, the bounds of lost asks included."""

    hint = "Resume it with a higher limit of dollars."


class Deadline(Stopped):
    """The run's deadline has come; nothing began after it."""

    hint = "Resume it with a later `until`."


class TooManyResumes(Stopped):
    """The run was resumed as often as it may be."""

    hint = "Find out why it keeps ending; then resume it with a higher limit of resumes."


class WorkspaceChanged(Stopped):
    """Files the run wrote no longer hold what it wrote. `detail` names them."""

    hint = "Restore the files, or resume accepting the workspace as it is."


class ModelUnavailable(Stopped):
    """The model could not be asked: five retries in a row failed, or the failure was permanent."""

    hint = "Remove the cause, such as a wrong key, a wrong name or a service that is down; then resume it."


class ConversationRefused(Stopped):
    """The model refused the conversation, as it came and rebuilt from texts and calls. `detail` is what it said."""

    hint = "Resume it with another model, fork it before the line that is refused, or set a policy that summarises."


class EmptyReply(Stopped):
    """The model's last reply is no answer: empty, or cut at its length limit, twice. `detail` says which."""

    hint = "Resume it with a higher max_tokens or another model; it is asked again."


class OutputInvalid(Stopped):
    """The model's answers did not fit the agent's output type, `output_retries` times and once more. `detail`: why."""

    hint = "Resume it with another model, or a type that fits; it is asked again."


class Interrupted(Stopped):
    """A signal or a cancellation parked the run."""

    hint = "Resume it when you like; nothing that had returned is lost."


class Parked(Stopped):
    """A person holds the run back: nothing but a resume of this run carries it on. `detail` names the person."""

    hint = "Resume it when it may go on."


class StoppedByPerson(Stopped):
    """A person stopped the run for good; no resume clears it."""

    hint = "It stays stopped. Start a new one."


class Forked(Stopped):
    """The run was stopped for good because a fork of it goes on in its place. `detail` names the fork."""

    hint = "Resume the fork. If it is not there, its making was cut off: fork this run again."


class ParentClosed(Stopped):
    """The run was a child, and its parent goes no further. `detail` names the parent."""

    hint = "It stays stopped; its parent's answer, or a fork of its parent, is what goes on."


STOPS = {kind.__name__: kind for kind in Stopped.__subclasses__()}
"""Every reason a log may name, and the error it is raised as."""
