"""The vocabulary: every fact that a run's log can state.

A tag on disk is an explicit string, never a class path; a tag is never reused, a field's type never changes, and a new
field has a default. *Decision*: written because `decide` chose it, and compared by a retrace. *Input*: what the world
or a person said, fed to a retrace. Times are UTC, sizes are bytes, durations are seconds, money is US dollars.

tag                 kind      legal in                 fields
run_started         input     new                      run agent task workspace limits definitions approve host pid
                                                       after history
run_forked          input     model tools paused done  run parent seq host pid fence
run_resumed         input     model tools paused       host pid counted clock_back definitions
limits_changed      input     model tools paused       limits
workspace_accepted  input     model tools paused       by files
model_asked         decision  model                    purpose n upto bound digests
reply_saved         input     model                    reply
model_failed        input     model                    error transient billed retry_after
attempt_marked      decision  tools                    call n key effect remembers intent
attempt_ended       input     tools                    call n did retry_after error asks
result_recorded     both      tools                    call how text n lossy first
lookup_asked        decision  tools                    call n believes
lookup_answered     input     tools                    call said error why
question_asked      decision  tools                    id kind call tool arguments digest why fenced
question_answered   input     tools paused             id answer who digest text
file_intended       input     tools                    call path sha256 before
file_written        input     tools                    call path sha256
wait_until          decision  model tools              until why call
phase_changed       decision  model tools paused       phase answer
run_stopped         both      model tools paused       reason final detail

`result_recorded` is an input when `how` is ran or found, `run_stopped` when a person, a signal or the workspace stopped
the run; else they are decisions. `phase_changed` leads from model to done, from tools to paused, from paused to tools.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from replay._messages import Bound, How, Message, Purpose, Reply
from replay._values import Definitions, Digests, Effect, Fenced, FileHash, Kind, Limits, Verdict


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="type"):
    """One fact. The root of the vocabulary. A frozen value holds no circle, so garbage collection may pass it by."""


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    """The run exists: its first line."""

    run: str
    agent: str
    task: str
    workspace: str | None
    limits: Limits
    definitions: Definitions
    approve: Literal["ask", "off"]
    host: str
    pid: int
    after: str | None = None
    history: tuple[Message, ...] = ()


class RunForked(Event, frozen=True, kw_only=True, tag="run_forked"):
    """From here on this log is another run than its parent; what was in flight there is unknown here."""

    run: str
    parent: str
    seq: int
    host: str
    pid: int
    fence: tuple[Fenced, ...] = ()


class RunResumed(Event, frozen=True, kw_only=True, tag="run_resumed"):
    """A new life carries on: what was in flight is now open, an ask without a reply is lost."""

    host: str
    pid: int
    counted: bool
    clock_back: bool
    definitions: Definitions


class LimitsChanged(Event, frozen=True, kw_only=True, tag="limits_changed"):
    """Today's limits, which win from here on."""

    limits: Limits


class WorkspaceAccepted(Event, frozen=True, kw_only=True, tag="workspace_accepted"):
    """A person vouches for files that no longer match."""

    by: str
    files: tuple[FileHash, ...]


class ModelAsked(Event, frozen=True, kw_only=True, tag="model_asked"):
    """An ask is about to be sent.

    `n` counts asks in a row without a reply; a summary covers the messages before `upto`.
    """

    purpose: Purpose
    n: int
    upto: int
    bound: Bound
    digests: Digests


class ReplySaved(Event, frozen=True, kw_only=True, tag="reply_saved"):
    """A complete reply, before any of its calls runs."""

    reply: Reply


class ModelFailed(Event, frozen=True, kw_only=True, tag="model_failed"):
    """An ask came to nothing. `billed` says that tokens may have been spent: then the bound counts as spent."""

    error: str
    transient: bool
    billed: bool = False
    retry_after: float | None = None


class AttemptMarked(Event, frozen=True, kw_only=True, tag="attempt_marked"):
    """A call is about to be tried. `remembers` is how many seconds the service keeps the key."""

    call: str
    n: int
    key: str
    effect: Effect
    remembers: float | None = None
    intent: str | None = None


class AttemptEnded(Event, frozen=True, kw_only=True, tag="attempt_ended"):
    """A try ended without a result: it certainly did nothing, or nobody knows.

    `asks`: it can't go on before a person has answered what `error` asks.
    """

    call: str
    n: int
    did: Literal["nothing", "unknown"]
    retry_after: float | None = None
    error: str = ""
    asks: bool = False


class ResultRecorded(Event, frozen=True, kw_only=True, tag="result_recorded"):
    """What a call came to. `n` is the attempt that returned it; `first` the call whose intent this one repeats."""

    call: str
    how: How
    text: str
    n: int | None = None
    lossy: bool = False
    first: str | None = None


class LookupAsked(Event, frozen=True, kw_only=True, tag="lookup_asked"):
    """The service is about to be asked.

    `believes`: enough time has passed for a `Missing` to be believed.
    """

    call: str
    n: int
    believes: bool


class LookupAnswered(Event, frozen=True, kw_only=True, tag="lookup_answered"):
    """The service did not have it, or could not say; what it found is a result.

    `error` is set when the lookup raised, `why` is what it said of being unsure.
    """

    call: str
    said: Literal["missing", "unsure"]
    error: str | None = None
    why: str = ""


class QuestionAsked(Event, frozen=True, kw_only=True, tag="question_asked"):
    """A person decides. `digest` is of the exact `arguments` shown: an answer covers only those.

    `fenced` is the place in the state's fence of the effect that this call would repeat, if that is why it is asked.
    """

    id: str
    kind: Kind
    call: str
    tool: str
    arguments: str
    digest: str
    why: str
    fenced: int | None = None


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="question_answered"):
    """Who decided what. `text` is a refusal's reason, or what was found."""

    id: str
    answer: Verdict
    who: str
    digest: str
    text: str = ""


class FileIntended(Event, frozen=True, kw_only=True, tag="file_intended"):
    """A file is about to have this content; until it is written, the old content (`before`) is explained too."""

    call: str
    path: str
    sha256: str | None
    before: str | None


class FileWritten(Event, frozen=True, kw_only=True, tag="file_written"):
    """The file has this content, synced."""

    call: str
    path: str
    sha256: str | None


class WaitUntil(Event, frozen=True, kw_only=True, tag="wait_until"):
    """Nothing is due before `until`."""

    until: datetime
    why: Literal["backoff", "lands", "lookup", "model"]
    call: str | None = None


class PhaseChanged(Event, frozen=True, kw_only=True, tag="phase_changed"):
    """The loop's next move changes. The fold checks it and does not trust it."""

    phase: Literal["tools", "paused", "done"]
    answer: str | None = None


class RunStopped(Event, frozen=True, kw_only=True, tag="run_stopped"):
    """The run goes no further until it is resumed; `final`: not even then."""

    reason: str
    final: bool = False
    detail: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """An event of a later version, kept whole as `raw` JSON.

    Unless it is `ignorable`, the run can be read but not continued.
    """

    tag: str
    raw: bytes
    ignorable: bool


Known = (
    RunStarted
    | RunForked
    | RunResumed
    | LimitsChanged
    | WorkspaceAccepted
    | ModelAsked
    | ReplySaved
    | ModelFailed
    | AttemptMarked
    | AttemptEnded
    | ResultRecorded
    | LookupAsked
    | LookupAnswered
    | QuestionAsked
    | QuestionAnswered
    | FileIntended
    | FileWritten
    | WaitUntil
    | PhaseChanged
    | RunStopped
)
Any = Event | Unknown
