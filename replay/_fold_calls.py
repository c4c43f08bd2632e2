"""What a call's attempts, lookups, questions, files, child run and result do to the state.

An attempt is marked before it acts. It ends with a result, with certainly nothing, or unknown. Only a result settles a
call. One unknown attempt keeps the call in doubt, whatever a later attempt says, until the service (a believed
`Missing`) or a person (`rerun`) says that none of the attempts so far did anything.

A child's spend is a total, and its parent adds what it grew by: so it counts once, however often it is reported. Only a
child that rests is reported or carried on, and only while its call has no result.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._codec import digest
from replay._fold_life import add_message, take
from replay._rules import Broken, Transitions, present, require, shared
from replay.messages import HAPPENED, Result, ToolResults, UserMessage
from replay.state import Attempt, CallState, Child, Draft, Lookups, Question
from replay.values import FITS, Happened, ParentEffect

transitions = Transitions()
_NONE = Lookups()


def _open_call(state: Draft, call: str) -> tuple[int, CallState]:
    """The call of this id, which must have no result, and its place."""
    place = state.place(call)
    if place is None:
        raise Broken(f"there is no call {call} in the current reply")
    found = state.calls[place]
    if found.result is not None:
        raise Broken(f"call {call} has a result")
    return place, found


def _put(state: Draft, place: int, call: CallState) -> None:
    state.calls = (*state.calls[:place], call, *state.calls[place + 1 :])


def _covered(state: Draft, call: str, arguments: str) -> bool:
    """Whether the last approval of this call, if it had one, was of the arguments that run."""
    asked = next((q for q in reversed(state.questions.values()) if q.call == call and q.kind == "approve"), None)
    if asked is None or (asked.answer is not None and asked.answer.answer == "edit"):
        return True  # of edited ones the tool writes its own spelling
    return asked.digest == digest(arguments.encode())


@transitions.on(e.AttemptMarked)
def marked(state: Draft, event: e.AttemptMarked, at: datetime) -> None:
    """An attempt is about to act."""
    place, call = _open_call(state, event.call)
    if event.n != len(call.attempts) + 1:
        raise Broken(f"attempt {len(call.attempts) + 1} comes next, not {event.n}")
    require(call.child is None, "this call is a child run")
    require(not call.busy, "this call is in flight")
    if event.arguments is not None:
        require(event.n == 1, "only a first marker has arguments")
        require(_covered(state, event.call, event.arguments), "the answer was given for other arguments")
    attempt = Attempt(
        n=event.n,
        key=event.key,
        effect=event.effect,
        key_ttl=event.key_ttl,
        intent=event.intent,
        marked=at,
        run=state.run,
        uid=state.uid,
    )
    bound = call.bound if event.arguments is None else event.arguments
    _put(state, place, replace(call, attempts=(*call.attempts, attempt), lookups=_NONE, cleared=None, bound=bound))
    state.wait = None
    if event.n == 1:
        tool = call.call.tool
        state.tried = state.tried | {tool: state.tried.get(tool, 0) + 1}


@transitions.on(e.AttemptEnded)
def ended(state: Draft, event: e.AttemptEnded, at: datetime) -> None:
    """An attempt ended without a result."""
    place, call = _open_call(state, event.call)
    require(call.in_flight and call.attempts[-1].n == event.n, f"attempt {event.n} is not in flight")
    *before, last = call.attempts
    _put(state, place, replace(call, attempts=(*before, replace(last, **shared(Attempt, event), ended=at))))


def _settles(event: e.ResultRecorded, call: CallState, guarded: ParentEffect | None) -> None:
    """Raises `Broken` unless a call may have this result now."""
    if event.how == "ran" and call.child is not None:
        require(call.child.phase == "done" and not call.child.running, "its child is not done")
    elif event.how == "ran":
        if not call.in_flight or call.attempts[-1].n != event.n:
            raise Broken(f"attempt {event.n} is not in flight")
    else:
        require(not call.in_flight, "an attempt of this call is in flight")
        require(call.child is None or not call.child.running, "the child of this call is running")
        if event.how in ("found", "stated"):
            require(call.in_doubt or guarded is not None, "there is nothing to settle")
        else:
            only_reads = all(a.effect == "reads" for a in call.attempts)  # what only reads has not acted
            require(only_reads or not call.in_doubt, "an attempt may have acted")


@transitions.on(e.ResultRecorded)
def recorded(state: Draft, event: e.ResultRecorded, at: datetime) -> None:
    """A call is settled. After the last one of a reply the model is asked again."""
    place, call = _open_call(state, event.call)
    guarded = state.passed(event.call, "done") if event.how == "stated" else None
    _settles(event, call, guarded)
    of = call.call
    result = Result(
        call=of.id, tool=of.tool, provider_id=of.provider_id, how=event.how, text=event.text, images=event.images
    )
    _put(state, place, replace(call, result=result, lookups=_NONE))
    state.wait, state.uncounted = None, True
    state.replies_refused = state.replies_refused + 1 if event.how == "no_output" else 0
    if event.lossy:
        state.lossy = (*state.lossy, event.call)
    intent = call.attempts[-1].intent if call.attempts else guarded.intent if guarded is not None else None
    if intent is not None and event.how in HAPPENED:
        state.happened = state.happened | {intent: Happened(call=event.call, text=event.text)}
    is_last = all(c.result is not None for c in reversed(state.calls))  # of many calls the last have none
    require(event.how != "output" or is_last, "the output comes after every other result")
    if is_last:
        add_message(state, ToolResults(tuple([c.result for c in state.calls if c.result is not None])))
        for note in state.notes:
            add_message(state, UserMessage(note))
        state.phase, state.notes = "model", ()
    if event.how == "output":
        state.stop, state.answer = "stop", event.text


@transitions.on(e.LookupAsked)
def lookup_asked(state: Draft, event: e.LookupAsked, at: datetime) -> None:
    """The service is about to be asked."""
    place, call = _open_call(state, event.call)
    require(call.in_doubt and not call.in_flight, "there is nothing to look up")
    require(event.n == call.lookups.asked + 1, f"lookup {call.lookups.asked + 1} comes next, not {event.n}")
    lookups = replace(call.lookups, asked=event.n, in_flight=True, believes=event.believes, said=None, at=at)
    _put(state, place, replace(call, lookups=lookups))
    state.wait = None


@transitions.on(e.LookupAnswered)
def lookup_answered(state: Draft, event: e.LookupAnswered, at: datetime) -> None:
    """The service could not say, or has no trace of it; that is believed only when it was asked late enough."""
    place, call = _open_call(state, event.call)
    require(call.lookups.in_flight, "the service was not asked")
    said = {"said": event.said, "why": event.error or event.why, "retry_after": event.retry_after, "at": at}
    raised = call.lookups.raised + 1 if event.error is not None else 0
    call = replace(call, lookups=replace(call.lookups, in_flight=False, raised=raised, **said))
    if event.said == "missing" and call.lookups.believes:
        call = _clear(call, "missing")
    _put(state, place, call)


def _clear(call: CallState, by: str) -> CallState:
    """The call after `by` said that no attempt so far did anything."""
    attempts = tuple(replace(a, did="nothing") for a in call.attempts)
    return replace(call, attempts=attempts, cleared="person" if by == "person" else "missing")


@transitions.on(e.QuestionAsked)
def question_asked(state: Draft, event: e.QuestionAsked, at: datetime) -> None:
    """A person is asked, with nothing in flight."""
    place, call = _open_call(state, event.call)
    require(not state.busy, "something is in flight")
    require(event.id not in state.questions, f"question {event.id} was asked before")
    repeats = any(n == event.guarded and held.tool == event.tool for n, held in enumerate(state.fork_guard))
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
    _put(state, place, call)
    state.questions, state.wait = state.questions | {event.id: question}, None


@transitions.on(e.QuestionAnswered)
def question_answered(state: Draft, event: e.QuestionAnswered, at: datetime) -> None:
    """The first answer counts, and only for the arguments that were shown."""
    question = present(state.questions.get(event.id), f"there is no question {event.id}")
    require(question.answer is None, f"question {event.id} was answered before")
    require(event.who.strip(), "nobody answered it")
    require(event.answer in FITS[question.kind], f"{event.answer} does not answer a question of kind {question.kind}")
    require(event.digest == question.digest, "it answers other arguments than those shown")
    take(state, event)
    state.questions = state.questions | {event.id: replace(question, answer=event)}
    state.uncounted = state.uncounted or state.phase == "paused"
    if event.answer in ("rerun", "failed"):
        place, call = _open_call(state, question.call)
        _put(state, place, _clear(call, "person"))
    if event.answer == "edit":
        new = present(event.arguments, "it gives no other arguments")
        require(event.new_digest == digest(new.encode()), "its digest is of other arguments")
        note = f"{event.who} changed the arguments of call {question.call} of {question.tool} to {new}"
        place, call = _open_call(state, question.call)
        _put(state, place, replace(call, bound=new))
        state.notes = (*state.notes, note)


@transitions.on(e.FileIntended)
def file_intended(state: Draft, event: e.FileIntended, at: datetime) -> None:
    """Old and new content are both expected until the write is known to be whole."""
    require(_open_call(state, event.call)[1].in_flight, "this call is not in flight")
    before = state.files.get(event.path, (event.before,))
    state.files = state.files | {event.path: (*(h for h in before if h != event.sha256), event.sha256)}


@transitions.on(e.FileWritten)
def file_written(state: Draft, event: e.FileWritten, at: datetime) -> None:
    """What is expected now is this content, or what another call of its wave wrote there later."""
    require(state.find(event.call) is not None, f"there is no call {event.call} in the current reply")
    expected = state.files.get(event.path, ())
    if event.sha256 not in expected:
        beside = any(c.attempts and c.call.id != event.call for c in state.calls)  # another one wrote it since
        require(expected and beside, f"{event.path} was not intended to have this content")
    else:
        state.files = state.files | {event.path: expected[expected.index(event.sha256) :]}


@transitions.on(e.ChildStarted)
def child_started(state: Draft, event: e.ChildStarted, at: datetime) -> None:
    """A child runs. Started again, it is the same run."""
    place, call = _open_call(state, event.call)
    require(not call.attempts, "a call that was tried is no child run")
    require((event.arguments is None) != (call.child is None), "the first start has the arguments, and no other")
    if call.child is None:
        state.tried = state.tried | {call.call.tool: state.tried.get(call.call.tool, 0) + 1}
        _put(state, place, replace(call, child=Child(**shared(Child, event)), bound=event.arguments))
    else:
        require(not call.child.running, "this child is running")
        same = (call.child.run, call.child.uid, call.child.agent) == (event.run, event.uid, event.agent)
        require(same, f"the child of this call is {call.child.run}")
        child = replace(call.child, limits=event.limits, running=True, questions=(), until=None, stop=None, at=None)
        _put(state, place, replace(call, child=child))
    state.wait = None


@transitions.on(e.ChildRested)
def child_rested(state: Draft, event: e.ChildRested, at: datetime) -> None:
    """A child rests. A resume after a life in which one came further, or was answered, need not count."""
    place, call = _open_call(state, event.call)
    was = present(call.child, "this call is no child run")
    child = replace(was, **shared(Child, event), running=False, at=at)
    answered = not was.running and was.questions != event.questions
    further = event.turns_used > was.turns_used or event.phase == "done" or answered
    _put(state, place, replace(call, child=child))
    state.wait = None
    state.spent = state.spent.grown(was.spent, event.spent)
    state.child_turns += event.turns_used - was.turns_used
    state.uncounted = state.uncounted or further
