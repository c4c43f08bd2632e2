"""What a run comes to, and the questions it leaves to a person: answered from any process, once (spec row 25).

The first answer wins. An answer is an event with who and when and the digest of the arguments that were shown, so it
covers exactly those. `approve` and `refuse` answer approvals, `settle` answers the ladder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import eventlog
import replay
from replay import Event, Question, QuestionAnswered, RunStopped, State
from runner import _door, _folded, _opening
from runner._clock import Clock, LogClock
from runner.errors import AlreadyAnswered, CannotContinue, NoSuchQuestion, NotStoppable, WrongAnswer

Verdict = Literal["approve", "refuse", "rerun", "done"]
_FITS = {"approve": ("approve", "refuse"), "settle": ("rerun", "done")}


@dataclass(frozen=True)
class Finished:
    """The run is done: its answer, its id, and its state."""

    answer: str
    run: str
    state: State = field(repr=False)


@dataclass(frozen=True)
class Paused:
    """A person decides: the open questions. The lock is free and the process may exit."""

    questions: tuple[Question, ...]
    run: str
    state: State = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """What a question's hook returns. `verdict` fits the question's kind; `text` is a reason, or what was found."""

    verdict: Verdict
    who: str
    text: str = ""


OnQuestion = Callable[[Question], Answer | Awaitable[Answer | None] | None]


def answered(state: State, question: str, verdict: Verdict, who: str, text: str) -> QuestionAnswered:
    """The event of an answer. Raises `NoSuchQuestion`, `AlreadyAnswered` or `WrongAnswer`."""
    asked = state.questions.get(question)
    if asked is None:
        raise NoSuchQuestion(state.run, question)
    if asked.answer is not None:
        raise AlreadyAnswered(state.run, question, asked.answer.who, asked.answer.answer)
    if verdict not in _FITS[asked.kind]:
        raise WrongAnswer(state.run, question, asked.kind, verdict)
    return QuestionAnswered(
        id=question,
        answer=verdict,
        who=_door.clean(who, _door.MAX_NAME).text,
        digest=asked.digest,
        text=_door.clean(text).text,
    )


def approve(
    run: str,
    question: str,
    who: str,
    *,
    runs: str | Path,
    force: bool = False,
    disk: eventlog.Disk = eventlog.DISK,
) -> State:
    """Say yes to an approval, in the name of `who`. The run goes on at its next resume.

    Returns the state with the answer. `force` and `disk` as in `runner.start`. Raises `NoSuchQuestion`,
    `AlreadyAnswered`, `WrongAnswer`, and the log's errors; `eventlog.RunLocked` when a process is running it.
    """
    return _write(Path(runs), run, lambda state: answered(state, question, "approve", who, ""), force=force, disk=disk)


def refuse(
    run: str,
    question: str,
    who: str,
    reason: str = "",
    *,
    runs: str | Path,
    force: bool = False,
    disk: eventlog.Disk = eventlog.DISK,
) -> State:
    """Say no to an approval: the call is not run, and the model reads the reason. Raises as `approve` does."""
    return _write(
        Path(runs), run, lambda state: answered(state, question, "refuse", who, reason), force=force, disk=disk
    )


def settle(
    run: str,
    question: str,
    who: str,
    verdict: Literal["rerun", "done"],
    found: str = "",
    *,
    runs: str | Path,
    force: bool = False,
    disk: eventlog.Disk = eventlog.DISK,
) -> State:
    """Answer the ladder: `rerun`, or `done` with what was found as the call's result.

    `rerun` says that every attempt so far did nothing. Raises as `approve` does.
    """
    if verdict not in _FITS["settle"]:
        raise WrongAnswer(run, question, "settle", verdict)
    return _write(Path(runs), run, lambda state: answered(state, question, verdict, who, found), force=force, disk=disk)


def stop(run: str, who: str, *, runs: str | Path, force: bool = False, disk: eventlog.Disk = eventlog.DISK) -> State:
    """Stop a run for good, in the name of `who`; `.open` of the state it returns are the calls that may have happened.

    Raises `NotStoppable` for a run that is done or was stopped for good before, and the log's errors.
    """

    def stopped(state: State) -> Event:
        if state.phase == "done":
            raise NotStoppable(run, "it is done")
        if state.stopped is not None and state.stopped.final:
            raise NotStoppable(run, f"it was stopped for good before: {state.stopped.detail}")
        return RunStopped(reason="StoppedByPerson", final=True, detail=f"by {_door.clean(who, _door.MAX_NAME).text}")

    return _write(Path(runs), run, stopped, force=force, disk=disk, final=True)


def _write(
    runs: Path,
    run: str,
    choose: Callable[[State], Event],
    *,
    force: bool,
    disk: eventlog.Disk,
    final: bool = False,
) -> State:
    """One event, written by a process that only says this one thing."""
    log, state = _folded.opened(runs, run, force=force, disk=disk)
    with log:
        if state.unknown:
            raise CannotContinue(run, state.unknown)
        if not final:
            _opening.check(state, run)
        event = choose(state)
        now = LogClock(Clock(), state.at).now()
        after = replay.step(state, event, now)
        log.append(now, [replay.encode(event)])
        return after
