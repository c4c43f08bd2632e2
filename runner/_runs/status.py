"""What a run is, in a few words that its log's last writer leaves behind, so that ten thousand runs are listed unread.

The words are made of the state alone, so whoever has to read the log finds the same. Their tag names the version of the
words and of the fold: those of another version are not understood, and the log is read.
"""

import functools
import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

import replay
from replay import State
from replay.values import ParentCall, Phase
from runner._agent import sanitize
from runner.errors import BadAgent

RETRY = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))
"""When a run is asked on that stopped because its model was down: after the first such stop in a row, the second ..."""
TASK = 2000
"""Characters of the task that are kept."""
_MOST_LABELS, _LABEL, _VALUE = 32, r"[a-z0-9][a-z0-9._/-]{0,62}", 256


class RunStatus(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="v", tag=f"1.{replay.FOLD_VERSION}"
):
    """What a run came to with its last line.

    Attributes:
        agent: The name of its agent.
        task: Its task, up to 2,000 characters of it.
        labels: What it was labelled with when it began.
        began: When it began (UTC).
        at: When its last line was written (UTC).
        phase: The phase it is in.
        stopped: The reason of its stop, if it is stopped.
        closed: Whether it goes no further, whatever happens: it is done, or was stopped for good.
        wake: When somebody must look at it again (UTC); None: only after a person did something, or never.
        open_questions: The ids of the questions that a person has not answered.
        asked: When the oldest of them was asked (UTC).
        in_doubt: The ids of the calls that may have happened and are not settled.
        turns: The turns so far.
        resumes: The resumes that counted.
        dollars: US dollars spent, with the bounds of lost requests.
        uid: The identity that its keys are made of.
        answer: The SHA-256 of its answer in UTF-8, in hex, if it is done.
        parent_call: The call that it does, if it is a child run.
    """

    agent: str = ""
    task: str = ""
    labels: dict[str, str] = {}
    began: datetime | None = None
    at: datetime | None = None
    phase: Phase = "new"
    stopped: str | None = None
    closed: bool = False
    wake: datetime | None = None
    open_questions: tuple[str, ...] = ()
    asked: datetime | None = None
    in_doubt: tuple[str, ...] = ()
    turns: int = 0
    resumes: int = 0
    dollars: float = 0.0
    uid: str = ""
    answer: str = ""
    parent_call: ParentCall | None = None


@functools.cache
def _decoder() -> msgspec.json.Decoder[RunStatus]:
    return msgspec.json.Decoder(RunStatus)


def of(state: State, at: datetime | None = None) -> RunStatus:
    """The status of a run in this state, which its line of `at` makes (by default the state's own)."""
    at = at or state.at
    waiting = state.waiting
    return RunStatus(
        agent=state.agent,
        task=state.task if len(state.task) <= TASK else state.task[: TASK - 1] + "…",
        labels=state.labels,
        began=state.began,
        at=at,
        phase=state.phase,
        stopped=state.stopped.reason if state.stopped is not None else None,
        closed=state.over,
        wake=_wake(state, at),
        open_questions=tuple([question.id for question in waiting]),
        asked=min([question.at for question in waiting], default=None),
        in_doubt=state.in_doubt,
        turns=state.turns,
        resumes=state.resumes,
        dollars=state.spent.total_dollars,
        uid=state.uid,
        answer=hashlib.sha256((state.answer or "").encode()).hexdigest() if state.phase == "done" else "",
        parent_call=state.parent_call,
    )


def understood(words: bytes | None) -> RunStatus | None:
    """A status as it was written; None when this version did not write it."""
    try:
        return _decoder().decode(words) if words is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def labelled(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Labels as they are stored, in the order of their names. Raises `BadAgent`."""
    found = {}
    for name, value in sorted((labels or {}).items()):
        if not re.fullmatch(_LABEL, name):
            raise BadAgent(f"{name!r} is no label: write 1 to 63 of a-z 0-9 . _ / -, a letter or digit first")
        found[name] = sanitize.clean(value)
        if len(found[name]) > _VALUE or len(found) > _MOST_LABELS:
            raise BadAgent(f"a run has {_MOST_LABELS} labels of {_VALUE} characters at most")
    return found


def _wake(state: State, at: datetime | None) -> datetime | None:
    """When somebody must look at a run that nobody holds."""
    if state.phase == "new" or state.over:
        return None
    if state.stopped is not None and state.stopped.reason == "ModelUnavailable" and state.failures.transient:
        asked_for = timedelta(seconds=state.failures.retry_after or 0.0)
        return at and at + max(RETRY[min(state.unavailable, len(RETRY)) - 1], asked_for)
    if state.stopped is not None and state.stopped.reason != "Interrupted":
        return None
    if state.phase == "paused" and state.waiting and not (state.child_is_due and not state.unanswered):
        return state.due
    return state.due if state.wait is not None and state.stopped is None else at
