"""How a call's attempts, lookups, questions, files and result change the state.

An attempt is marked before it acts, and ends as a result, as certainly nothing, or as unknown. A call is settled by a
result alone; one unknown attempt keeps it open whatever a later attempt says (spec row 22), until the service (a
believed
`Missing`) or a person (`rerun`) vouches for all attempts so far (spec row 23).
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from replay import _events as e
from replay._fold_life import say, told
from replay._messages import HAPPENED, Answered, Result, Said
from replay._rules import Broken, present, require
from replay._state import Attempt, CallState, Happened, Lookups, Question, State


def _call(state: State, call: str) -> CallState:
    found = state.find(call)
    if found is None:
        raise Broken(f"there is no call {call} in the current reply")
    if found.result is not None:
        raise Broken(f"call {call} has a result")
    return found


def _with(state: State, call: CallState) -> tuple[CallState, ...]:
    """The calls of the reply, one of them as it is now."""
    return tuple([call if c.call.id == call.call.id else c for c in state.calls])


def _put(state: State, call: CallState) -> State:
    return replace(state, calls=_with(state, call))


def marked(state: State, event: e.AttemptMarked, at: datetime) -> State:
    """An attempt is about to act."""
    call = _call(state, event.call)
    if event.n != len(call.attempts) + 1:
        raise Broken(f"attempt {len(call.attempts) + 1} comes next, not {event.n}")
    require(not call.in_flight and not call.lookups.in_flight, "this call is in flight")
    attempt = Attempt(
        n=event.n,
        key=event.key,
        effect=event.effect,
        remembers=event.remembers,
        intent=event.intent,
        marked=at,
        run=state.run,
    )
    call = replace(call, attempts=(*call.attempts, attempt), lookups=Lookups(), cleared=None)
    return replace(state, calls=_with(state, call), wait=None)


def ended(state: State, event: e.AttemptEnded, at: datetime) -> State:
    """An attempt ended without a result."""
    call = _call(state, event.call)
    last = call.attempts[-1] if call.attempts else None
    require(last is not None and last.n == event.n and last.did == "in flight", f"attempt {event.n} is not in flight")
    attempts = tuple(
        replace(a, did=event.did, ended=at, retry_after=event.retry_after, error=event.error, asks=event.asks)
        if a is last
        else a
        for a in call.attempts
    )
    return _put(state, replace(call, attempts=attempts))


def recorded(state: State, event: e.ResultRecorded, at: datetime) -> State:
    """A call is settled. The last one of a reply makes the next ask due."""
    call = _call(state, event.call)
    if event.how == "ran":
        if not call.in_flight or call.attempts[-1].n != event.n:
            raise Broken(f"attempt {event.n} is not in flight")
    else:
        require(not call.in_flight, "an attempt of this call is in flight")
    fenced = state.passed(event.call, "done") if event.how == "told" else None
    if event.how in ("found", "told"):
        require(call.open or fenced is not None, "there is nothing to settle")
    if event.how in ("failed", "invalid", "refused"):
        only_reads = all(a.effect == "reads" for a in call.attempts)  # nothing that reads has acted
        require(only_reads or not call.open, "an attempt may have acted")
    result = Result(
        call=event.call, tool=call.call.tool, provider_id=call.call.provider_id, how=event.how, text=event.text
    )
    calls = _with(state, replace(call, result=result, lookups=Lookups()))
    intent = call.attempts[-1].intent if call.attempts else fenced.intent if fenced is not None else None
    happened = state.happened
    if intent is not None and event.how in HAPPENED:
        happened = happened | {intent: Happened(call=event.call, text=event.text)}
    results = [c.result for c in calls if c.result is not None]
    if len(results) < len(calls):
        return replace(state, calls=calls, happened=happened, wait=None)
    said = told(state, Answered(tuple(results)))
    notes = state.notes
    state = replace(state, calls=calls, happened=happened, wait=None, phase="model", notes=(), **said)
    for note in notes:
        state = say(state, Said(note))
    return state


def lookup_asked(state: State, event: e.LookupAsked, at: datetime) -> State:
    """The service is about to be asked."""
    call = _call(state, event.call)
    require(call.open and not call.in_flight, "there is nothing to look up")
    require(event.n == call.lookups.asked + 1, f"lookup {call.lookups.asked + 1} comes next, not {event.n}")
    lookups = replace(call.lookups, asked=event.n, in_flight=True, believes=event.believes, said=None, at=at)
    return replace(_put(state, replace(call, lookups=lookups)), wait=None)


def lookup_answered(state: State, event: e.LookupAnswered, at: datetime) -> State:
    """The service could not say, or says it is missing: believed only when it was asked late enough."""
    call = _call(state, event.call)
    require(call.lookups.in_flight, "the service was not asked")
    raised = call.lookups.raised + 1 if event.error is not None else 0
    why = event.error or event.why
    call = replace(call, lookups=replace(call.lookups, in_flight=False, said=event.said, raised=raised, why=why, at=at))
    if event.said == "missing" and call.lookups.believes:
        call = _clear(call, "missing")
    return _put(state, call)


def _clear(call: CallState, by: str) -> CallState:
    """Every attempt so far did nothing, says `by`."""
    attempts = tuple(replace(a, did="nothing") for a in call.attempts)
    return replace(call, attempts=attempts, cleared="person" if by == "person" else "missing")


def question_asked(state: State, event: e.QuestionAsked, at: datetime) -> State:
    """A person is asked, with nothing in flight."""
    call = _call(state, event.call)
    require(not state.busy, "something is in flight")
    require(event.id not in state.questions, f"question {event.id} was asked before")
    repeats = event.fenced is not None and _is_fenced(state, event.fenced, event.tool)
    require(event.fenced is None or repeats, "the fence holds no such effect")
    require(
        call.open == (event.kind == "settle") or (repeats and event.kind == "settle"),
        "approvals come before an attempt, the ladder's question after one or for what the fence holds",
    )
    question = Question(
        id=event.id,
        kind=event.kind,
        call=event.call,
        tool=event.tool,
        arguments=event.arguments,
        digest=event.digest,
        why=event.why,
        at=at,
        fenced=event.fenced,
    )
    if event.kind == "settle":
        state = _put(state, replace(call, settles=call.settles + 1))
    return replace(state, questions=state.questions | {event.id: question}, wait=None)


def _is_fenced(state: State, place: int, tool: str) -> bool:
    """Whether the fence holds an effect of this tool at this place."""
    return 0 <= place < len(state.fence) and state.fence[place].tool == tool


def question_answered(state: State, event: e.QuestionAnswered, at: datetime) -> State:
    """The first answer wins, and covers only the arguments that were shown (spec row 25)."""
    question = present(state.questions.get(event.id), f"there is no question {event.id}")
    require(question.answer is None, f"question {event.id} was answered before")
    kinds = ("approve", "refuse") if question.kind == "approve" else ("rerun", "done")
    require(event.answer in kinds, f"{event.answer} does not answer a question of kind {question.kind}")
    require(event.digest == question.digest, "it answers other arguments than those shown")
    questions = state.questions | {event.id: replace(question, answer=event)}
    state = replace(state, questions=questions, answered=state.phase == "paused")
    if event.answer == "rerun":
        state = _put(state, _clear(_call(state, question.call), "person"))
    return state


def file_intended(state: State, event: e.FileIntended, at: datetime) -> State:
    """Old and new content are both explained until the write is known to be whole."""
    require(_call(state, event.call).in_flight, "this call is not in flight")
    before = state.files.get(event.path, (event.before,))
    return replace(state, files=state.files | {event.path: (*(h for h in before if h != event.sha256), event.sha256)})


def file_written(state: State, event: e.FileWritten, at: datetime) -> State:
    """Only the new content is explained."""
    require(state.find(event.call) is not None, f"there is no call {event.call} in the current reply")
    require(event.sha256 in state.files.get(event.path, ()), f"{event.path} was not intended to have this content")
    return replace(state, files=state.files | {event.path: (event.sha256,)})
