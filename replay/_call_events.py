"""The events about the calls of a reply: attempts, lookups, questions, files, results, and runs of their own."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from replay._event import Event
from replay.messages import How, Image
from replay.values import Effect, Kind, Limits, Local, Phase, Spent, StopReason, Text, Verdict


class AttemptMarked(Event, legal="tools", decision=True, title="the attempt of a call"):
    """A call is about to be tried. `key_ttl`: seconds. The first marker has the `arguments` that every attempt uses."""

    call: str
    n: int
    key: str
    effect: Effect
    key_ttl: float | None = None
    intent: str | None = None
    arguments: Text | None = None


class AttemptEnded(Event, legal="tools"):
    """An attempt ended without a result: it certainly did nothing, or nobody knows.

    `asks`: a person must answer what `error` asks before the next attempt. `error_type` is the name of the class that
    the tool raised, `traceback` its own frames. `raw` are a framework's own words, `withdrawn` says that its program
    took the call back, which did nothing and is still due.
    """

    call: str
    n: int
    did: Literal["nothing", "unknown"]
    retry_after: float | None = None
    error: Text = ""
    asks: bool = False
    error_type: str = ""
    traceback: Text = ""
    raw: Annotated[str, Local] = ""
    withdrawn: bool = False


class ResultRecorded(Event, legal="tools", decision=True, words="text", title="the result of a call"):
    """A call has its result. `n` is the attempt that returned it, `first` the call whose intent this one repeats.

    `raw` is the same as a framework has it, for its program that runs again.
    """

    call: str
    how: How
    text: Text
    n: int | None = None
    lossy: bool = False
    first: str | None = None
    images: tuple[Image, ...] | msgspec.UnsetType = msgspec.UNSET
    raw: Annotated[str, Local] = ""

    @property
    def is_decision(self) -> bool:
        """A result that came from a tool or a service is an input."""
        return self.how not in ("ran", "found")


class LookupAsked(Event, legal="tools", decision=True, title="the lookup of a call"):
    """The service is about to be asked whether a call happened. `believes`: a `Missing` would be believed by now."""

    call: str
    n: int
    believes: bool


class LookupAnswered(Event, legal="tools"):
    """The service has no trace of the call, or could not say: `error` when the lookup raised, `why` when unsure.

    `retry_after`: the seconds after which the service wants to be asked again.
    """

    call: str
    said: Literal["missing", "unsure"]
    error: Text | None = None
    why: Text = ""
    retry_after: float | None = None


class QuestionAsked(Event, legal="tools", decision=True, words="why", title="the question to a person"):
    """A person is asked. `digest` is of the `arguments` that are shown: an answer covers only those.

    An approval without an answer is refused at `expires`. `guarded` is the index in the state's `fork_guard` of the
    effect that this call would repeat, if that is the reason.
    """

    id: str
    kind: Kind
    call: str
    tool: str
    arguments: Text
    digest: str
    why: Text
    guarded: int | None = None
    expires: datetime | None = None


class QuestionAnswered(Event, legal="tools paused", stopped=True, title="the answer to a question"):
    """A person answered. `text` is the reason of a refusal, what was found, or the call's result.

    `edit` gives the call other `arguments`, of which `new_digest` is.

    `request` is the name of the request that it came by, if by one, and `post` that request's random mark.
    """

    id: str
    answer: Verdict
    who: Text
    digest: str
    text: Text = ""
    request: str | None = None
    post: str = ""
    arguments: Text | None = None
    new_digest: str = ""


class FileIntended(Event, legal="tools"):
    """A file is about to be written. Until it is, its old content (`before`) is expected too."""

    call: str
    path: Text
    sha256: str | None
    before: str | None


class FileWritten(Event, legal="tools"):
    """The file has this content, and it is durable."""

    call: str
    path: Text
    sha256: str | None


class ChildStarted(Event, legal="tools", decision=True, words="limits", title="the start of a child run"):
    """A child run is about to be started, or carried on, by the process that holds its parent.

    `limits` are over all that the child uses, before and from here on. The first one of a call has the `arguments`.
    """

    call: str
    run: str
    uid: str
    agent: str
    limits: Limits
    arguments: Text | None = None


class ChildRested(Event, legal="tools paused", stopped=True, title="the rest of a child run"):
    """Nobody carries the child on now: this is what its log says. After `done` the call's result follows.

    `spent` and `turns_used` are totals, its own children's included. `questions` are open there; it waits `until` a
    time; `stop` says why it stopped.
    """

    call: str
    phase: Phase
    spent: Spent
    turns_used: int
    questions: tuple[QuestionAsked, ...] = ()
    until: datetime | None = None
    stop: StopReason | None = None
