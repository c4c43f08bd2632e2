"""What a call's attempts, lookups, questions, files and result do to the state.

An attempt is marked before it acts. It ends with a result, with certainly nothing, or unknown. Only a result settles a
call. One unknown attempt keeps the call in doubt, whatever a later attempt says, until the service (a believed
`Missing`) or a person (`rerun`) says that none of the attempts so far did anything.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._digest import of as digest
from replay._fold_life import add_message, take, with_message
from replay._rules import Broken, Transitions, present, require, shared
from replay.messages import HAPPENED, Result, ToolResults, UserMessage
from replay.state import Attempt, CallState, Lookups, Question, State
from replay.values import FITS, Happened

transitions = Transitions()


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


def _covered(state: State, event: e.AttemptMarked) -> bool:
    """Whether the last approval of this call, if it had one, was of the arguments that run."""
    if event.arguments is None:
        return True
    asked = [q for q in state.questions.values() if q.call == event.call and q.kind == "approve"]
    if not asked:
        return True
    if asked[-1].answer is not None and asked[-1].answer.answer == "edit":
        return True  # the tool writes them in its own spelling
    return asked[-1].digest == digest(event.arguments.encode())


@transitions.on(e.AttemptMarked)
def marked(state: State, event: e.AttemptMarked, at: datetime) -> State:
    """An attempt is about to act."""
    call = _call(state, event.call)
    if event.n != len(call.attempts) + 1:
        raise Broken(f"attempt {len(call.attempts) + 1} comes next, not {event.n}")
    require(not call.in_flight and not call.lookups.in_flight, "this call is in flight")
    require(call.child is None, "this call is a child run")
    require(event.arguments is None or event.n == 1, "only a first marker has arguments")
    require(_covered(state, event), "the answer was given for other arguments")
    attempt = Attempt(**shared(Attempt, event), marked=at, run=state.run, uid=state.uid)
    bound = call.bound if event.arguments is None else event.arguments
    call = replace(call, attempts=(*call.attempts, attempt), lookups=Lookups(), cleared=None, bound=bound)
    tried = state.tried
    if event.n == 1:
        tried = tried | {call.call.tool: tried.get(call.call.tool, 0) + 1}
    return replace(state, calls=_with(state, call), wait=None, tried=tried)


@transitions.on(e.AttemptEnded)
def ended(state: State, event: e.AttemptEnded, at: datetime) -> State:
    """An attempt ended without a result."""
    call = _call(state, event.call)
    require(call.in_flight and call.attempts[-1].n == event.n, f"attempt {event.n} is not in flight")
    *before, last = call.attempts
    return _put(state, replace(call, attempts=(*before, replace(last, **shared(Attempt, event), ended=at))))


@transitions.on(e.ResultRecorded)
def recorded(state: State, event: e.ResultRecorded, at: datetime) -> State:
    """A call is settled. After the last one of a reply the model is asked again."""
    call = _call(state, event.call)
    if event.how == "ran" and call.child is not None:
        require(call.child.phase == "done" and not call.child.running, "its child is not done")
    elif event.how == "ran":
        if not call.in_flight or call.attempts[-1].n != event.n:
            raise Broken(f"attempt {event.n} is not in flight")
    else:
        require(not call.in_flight, "an attempt of this call is in flight")
        require(call.child is None or not call.child.running, "the child of this call is running")
    guarded = state.passed(event.call, "done") if event.how == "stated" else None
    if event.how in ("found", "stated"):
        require(call.in_doubt or guarded is not None, "there is nothing to settle")
    if event.how in ("failed", "invalid", "refused", "responded", "output", "no_output"):
        only_reads = all(a.effect == "reads" for a in call.attempts)  # what only reads has not acted
        require(only_reads or not call.in_doubt, "an attempt may have acted")
    result = Result(
        call=event.call,
        tool=call.call.tool,
        provider_id=call.call.provider_id,
        how=event.how,
        text=event.text,
        images=event.images,
    )
    state = replace(state, lossy=(*state.lossy, event.call)) if event.lossy else state
    calls = _with(state, replace(call, result=result, lookups=Lookups()))
    intent = call.attempts[-1].intent if call.attempts else guarded.intent if guarded is not None else None
    happened = state.happened
    if intent is not None and event.how in HAPPENED:
        happened = happened | {intent: Happened(call=event.call, text=event.text)}
    refused = state.replies_refused + 1 if event.how == "no_output" else 0
    changed = {"calls": calls, "happened": happened, "wait": None, "uncounted": True, "replies_refused": refused}
    results = [c.result for c in calls if c.result is not None]
    require(event.how != "output" or len(results) == len(calls), "the output comes after every other result")
    if len(results) < len(calls):
        return replace(state, **changed)
    said = with_message(state, ToolResults(tuple(results)))
    notes = state.notes
    state = replace(state, **changed, phase="model", notes=(), **said)
    for note in notes:
        state = add_message(state, UserMessage(note))
    return replace(state, stop="stop", answer=event.text) if event.how == "output" else state


@transitions.on(e.LookupAsked)
def lookup_asked(state: State, event: e.LookupAsked, at: datetime) -> State:
    """The service is about to be asked."""
    call = _call(state, event.call)
    require(call.in_doubt and not call.in_flight, "there is nothing to look up")
    require(event.n == call.lookups.asked + 1, f"lookup {call.lookups.asked + 1} comes next, not {event.n}")
    lookups = replace(call.lookups, asked=event.n, in_flight=True, believes=event.believes, said=None, at=at)
    return replace(_put(state, replace(call, lookups=lookups)), wait=None)


@transitions.on(e.LookupAnswered)
def lookup_answered(state: State, event: e.LookupAnswered, at: datetime) -> State:
    """The service could not say, or has no trace of it; that is believed only when it was asked late enough."""
    call = _call(state, event.call)
    require(call.lookups.in_flight, "the service was not asked")
    raised = call.lookups.raised + 1 if event.error is not None else 0
    why = event.error or event.why
    call = replace(call, lookups=replace(call.lookups, in_flight=False, said=event.said, raised=raised, why=why, at=at))
    if event.said == "missing" and call.lookups.believes:
        call = _clear(call, "missing")
    return _put(state, call)


def _clear(call: CallState, by: str) -> CallState:
    """The call after `by` said that no attempt so far did anything."""
    attempts = tuple(replace(a, did="nothing") for a in call.attempts)
    return replace(call, attempts=attempts, cleared="person" if by == "person" else "missing")


@transitions.on(e.QuestionAsked)
def question_asked(state: State, event: e.QuestionAsked, at: datetime) -> State:
    """A person is asked, with nothing in flight."""
    call = _call(state, event.call)
    require(not state.busy, "something is in flight")
    require(event.id not in state.questions, f"question {event.id} was asked before")
    repeats = event.guarded is not None and _is_guarded(state, event.guarded, event.tool)
    require(event.guarded is None or repeats, "the fork guard holds no such effect")
    require(
        call.in_doubt == (event.kind == "settle") or (repeats and event.kind == "settle"),
        "approvals come before an attempt, the ladder's question after one or for an effect in the fork guard",
    )
    question = Question(**shared(Question, event), at=at, declared=state.declared(event.tool))
    call = replace(
        call,
        settle_questions=call.settle_questions + (event.kind == "settle"),
        bound=call.bound if call.attempts else event.arguments,
    )
    state = _put(state, call)
    return replace(state, questions=state.questions | {event.id: question}, wait=None)


def _is_guarded(state: State, place: int, tool: str) -> bool:
    """Whether the fork guard holds an effect of this tool at this index."""
    return 0 <= place < len(state.fork_guard) and state.fork_guard[place].tool == tool


@transitions.on(e.QuestionAnswered)
def question_answered(state: State, event: e.QuestionAnswered, at: datetime) -> State:
    """The first answer counts, and only for the arguments that were shown."""
    question = present(state.questions.get(event.id), f"there is no question {event.id}")
    require(question.answer is None, f"question {event.id} was answered before")
    require(event.who.strip(), "nobody answered it")
    require(event.answer in FITS[question.kind], f"{event.answer} does not answer a question of kind {question.kind}")
    require(event.digest == question.digest, "it answers other arguments than those shown")
    questions = state.questions | {event.id: replace(question, answer=event)}
    state = replace(
        state, questions=questions, uncounted=state.uncounted or state.phase == "paused", taken=take(state, event)
    )
    if event.answer in ("rerun", "failed"):
        state = _put(state, _clear(_call(state, question.call), "person"))
    if event.answer == "edit":
        new = present(event.arguments, "it gives no other arguments")
        require(event.new_digest == digest(new.encode()), "its digest is of other arguments")
        note = f"{event.who} changed the arguments of call {question.call} of {question.tool} to {new}"
        state = _put(state, replace(_call(state, question.call), bound=new))
        state = replace(state, notes=(*state.notes, note))
    return state


@transitions.on(e.FileIntended)
def file_intended(state: State, event: e.FileIntended, at: datetime) -> State:
    """Old and new content are both expected until the write is known to be whole."""
    require(_call(state, event.call).in_flight, "this call is not in flight")
    before = state.files.get(event.path, (event.before,))
    return replace(state, files=state.files | {event.path: (*(h for h in before if h != event.sha256), event.sha256)})


@transitions.on(e.FileWritten)
def file_written(state: State, event: e.FileWritten, at: datetime) -> State:
    """What is expected now is this content, or what another call of its wave wrote there later."""
    require(state.find(event.call) is not None, f"there is no call {event.call} in the current reply")
    expected = state.files.get(event.path, ())
    if event.sha256 not in expected:
        beside = any(c.attempts and c.call.id != event.call for c in state.calls)  # another one wrote it since
        require(expected and beside, f"{event.path} was not intended to have this content")
        return state
    return replace(state, files=state.files | {event.path: expected[expected.index(event.sha256) :]})
