"""What a person, or a program, says to a run from outside: answer, stop, park. From any process, whoever holds the run.

A request is left in the run's inbox first. Then the lock is tried once: if nobody holds the run, the request is written
into the log at once. Otherwise its holder takes it within half a second, and whoever closes the log looks once more.
So a request is never left where nobody looks. The first of a name wins, also while it still lies there.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NoReturn

import msgspec

import eventlog
from replay import NEW, State
from replay.values import FITS
from runner import errors
from runner._agent import sanitize
from runner._clock import Clock
from runner._policy import resume_check
from runner._runs import load, requests
from runner._runs.questions import WithState, answered
from runner._runs.requests import Request

_LOOKS = 100
_BETWEEN = 0.02


class Receipt(WithState, frozen=True):
    """What became of a request.

    Attributes:
        written: Whether the log has it. If not, it lies in the inbox: for the process that holds the run, within half a
            second or after the tool that it was cut off in; where its line found no room, for whoever opens it next.
        state: The run's state, with the request if it is written.
        holder: The process that it was left for, if one holds the run.
    """

    written: bool
    state: State
    holder: eventlog.Holder | None = None


def approve(run: str, question: str, who: str, *, runs: eventlog.Runs) -> Receipt:
    """Say yes to an approval, in the name of `who`. The run goes on at its next resume, or where it is held.

    Args:
        run: The run's id.
        question: The question's id.
        who: Who answers.
        runs: Where runs live, as for `runner.start`.

    Returns:
        Whether the answer is written, or left for the process that holds the run.

    Raises:
        NoSuchQuestion: The run has no such question.
        AlreadyAnswered: The first answer wins.
        WrongAnswer: The question is none for an approval.
    """
    return answer(runs, run, question, "approve", who, "")


def refuse(run: str, question: str, who: str, reason: str = "", *, runs: eventlog.Runs) -> Receipt:
    """Say no to an approval: the call is not run, and the model reads the reason. Returns and raises as `approve`."""
    return answer(runs, run, question, "refuse", who, reason)


def edit(run: str, question: str, who: str, arguments: Mapping[str, Any], *, runs: eventlog.Runs) -> Receipt:
    """Say yes to a call with other arguments. The model is told; arguments that do not fit are asked about anew.

    Returns and raises as `approve`; `UnusableAnswer` for what is no JSON.
    """
    try:
        text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise errors.UnusableAnswer(run, question, str(error)) from None
    return answer(runs, run, question, "edit", who, text)


def respond(run: str, question: str, who: str, text: str, *, runs: eventlog.Runs) -> Receipt:
    """Answer a call yourself: `text` is its result, and nothing runs. Returns and raises as `approve`."""
    return answer(runs, run, question, "respond", who, text)


def settle(
    run: str,
    question: str,
    who: str,
    verdict: Literal["rerun", "done", "failed"],
    found: str = "",
    *,
    runs: eventlog.Runs,
) -> Receipt:
    """Say what became of a call in doubt. The run goes on at its next resume, or where it is held.

    Args:
        run: The run's id.
        question: The question's id.
        who: Who answers.
        verdict: `done`: it has happened, and `found` is its result. `rerun`: every attempt so far did nothing.
            `failed`: the same, and the model is told so in place of another attempt.
        found: What was found, or why it failed.
        runs: Where runs live, as for `runner.start`.

    Returns and raises as `approve`.
    """
    if verdict not in FITS["settle"]:
        raise errors.WrongAnswer(run, question, "settle", verdict)
    return answer(runs, run, question, verdict, who, found)


def stop(run: str, who: str, *, runs: eventlog.Runs) -> Receipt:
    """Stop a run for good, in the name of `who`. What is in flight may end first, within its process's `grace`.

    Returns as `approve`; the state's `in_doubt` are the calls that may have happened. Raises `NotStoppable` when the
    run is done, or was stopped for good before.
    """
    return _end(runs, run, "stop", who)


def park(run: str, who: str, *, runs: eventlog.Runs) -> Receipt:
    """Hold a run back, in the name of `who`: nothing but a `resume` of this run carries it on.

    What is in flight may end first, within its process's `grace`. Returns as `approve`. Raises `NotStoppable` when the
    run is done or stopped for good, or parked already.
    """
    return _end(runs, run, "park", who)


def answer(
    runs: eventlog.Runs, run: str, question: str, verdict: Any, who: str, text: str, clock: Clock | None = None
) -> Receipt:
    """Answer a question, with a verdict of whichever kind; a child's is named by the path to it."""
    store = eventlog.store(runs)
    run, question = at_path(store, run, question)
    state = load.read(store, run)
    resume_check.check(state, run)
    event = answered(state, question, verdict, who, text)

    def lost(state: State, first: str) -> NoReturn:
        answered(state, question, verdict, who, text)  # says who answered, once that is written
        lying = _lying(store, run, name)
        raise errors.AlreadyAnswered(run, question, first, "an answer" if lying is None else lying.verdict or "")

    name = f"answer-{question}"  # there is one for each question
    given = {"question": question, "verdict": verdict, "text": event.arguments or event.text}
    return post(store, run, name, lost, clock=clock, kind="answer", who=event.who, **given)


def at_path(store: eventlog.Store, run: str, question: str) -> tuple[str, str]:
    """The run that asked a question, and the question's id there. Raises `NoSuchQuestion`."""
    path, _, asked = str(question).rpartition(":")
    for call in path.split(":") if path else ():
        found = load.read(store, run).find(call)
        if found is None or found.child is None:
            raise errors.NoSuchQuestion(run, question)
        run = found.child.run
    return run, asked


def _end(runs: eventlog.Runs, run: str, kind: Literal["stop", "park"], who: str) -> Receipt:
    store = eventlog.store(runs)
    state = load.read(store, run)
    _over(state, kind)
    resume_check.check(state, run)

    def lost(state: State, first: str) -> NoReturn:
        _over(state, kind)
        raise errors.NotStoppable(run, f"{first} asked for that before")

    who = sanitize.name(who, f"a {kind} of {run}")
    name = "stop" if kind == "stop" else f"park-{state.parked + 1}"  # one for each time that it is parked
    return post(store, run, name, lost, kind=kind, who=who)


def _over(state: State, kind: str) -> None:
    """Raise why a run can't be stopped or parked any more."""
    if state.phase == "done":
        raise errors.NotStoppable(state.run, "it is done")
    if state.stopped is not None and state.stopped.final:
        raise errors.NotStoppable(state.run, f"it was stopped for good before: {state.stopped.detail}")
    if kind == "park" and state.stopped is not None and state.stopped.reason == "Parked":
        raise errors.NotStoppable(state.run, f"it is parked: {state.stopped.detail}")


def post(
    store: eventlog.Store, run: str, name: str, lost: Any, mark: str = "", clock: Clock | None = None, **request: Any
) -> Receipt:
    """Post a request and say what became of it. `lost(state, who)` raises that `who` was first."""
    mark = mark or store.disk.random(requests.MARK)
    data = msgspec.json.encode(Request(post=mark, **request))
    won, state = False, NEW
    for _ in range(_LOOKS):
        won = won or store.post(run, name, data)
        taken, saves = _take(store, run, clock, won=won)
        holder = store.holder(run) if taken is None else None
        state = taken if taken is not None else load.read(store, run)
        if (accepted := state.taken.get(name)) is not None:
            if accepted.post != mark:
                lost(state, accepted.who)
            return Receipt(written=True, state=state)
        if (refused := state.refused.get(name)) is not None and refused.post == mark:
            raise errors.RequestRefused(run, name, refused.why)
        if state.over:
            lost(state, "somebody")
        if won and not (saves and holder is None):
            return Receipt(written=False, state=state, holder=holder)
        if holder is not None and (first := _lying(store, run, name)) is not None:
            lost(state, first.who)
        if taken is not None and won:  # it was refused, and so was another of this name since
            raise errors.RequestRefused(run, name, "it does not fit")
        store.disk.pause(_BETWEEN)  # it was taken or refused just now, or who holds the run is about to close it
    return Receipt(written=False, state=state)


def _take(store: eventlog.Store, run: str, clock: Clock | None, *, won: bool) -> tuple[State | None, bool]:
    """What taking the requests gave, and whether it could be saved; raises that only where none of ours lies there."""
    try:
        return load.take_requests(store, run, clock), True
    except (eventlog.DiskFull, eventlog.DiskFailed, eventlog.LogDead):
        if not won:
            raise
        return None, False  # whoever is told of an error says it again


def _lying(store: eventlog.Store, run: str, name: str) -> Request | None:
    """The request of this name that nobody took yet, if it is one."""
    data = store.request(run, name)
    try:
        return msgspec.json.decode(data, type=Request) if isinstance(data, bytes) else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
