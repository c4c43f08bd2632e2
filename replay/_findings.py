"""Findings: what deserves a second look, each with the lines that show it and a sentence. The guide lists the kinds."""

import itertools
from collections.abc import Iterator

from replay import events as e
from replay.state import Attempt, State
from replay.stories import AskStory, AttemptStory, Audit, CallStory, Finding, QuestionStory
from replay.values import Limits

_HARMLESS = {
    "reads": "it only reads",
    "idempotent": "its tool is idempotent",
    "keyed": "the service still remembered its key",
    "non_idempotent": "nothing",
}


Found = tuple[str, tuple[int, ...], str]
"""The kind of a finding, the lines that show it, and its sentence."""


def find(told: Audit, noted: list[Finding]) -> list[Finding]:
    """All findings of a story, in the order of their first lines. `noted` are those found in single events."""
    of_run = (*_lives(told), *_asks(told.asks))
    found = [*noted, *(Finding(kind=kind, seqs=seqs, says=says) for kind, seqs, says in of_run)]
    for call in told.calls:
        found += (Finding(kind=kind, seqs=seqs, says=says, call=call.id) for kind, seqs, says in _call(call))
    return sorted(found, key=lambda finding: finding.seqs)


def _lives(told: Audit) -> Iterator[Found]:
    for life in told.lives:
        began = f"life {life.life} began with"
        if life.clock_back:
            yield "clock-back", (life.seq,), f"{began} the wall clock set back; older keys count as forgotten"
        if life.drift:
            yield "drift", (life.seq,), f"{began} other definitions than the one before: {', '.join(life.drift)}"


def _asks(asks: list[AskStory]) -> Iterator[Found]:
    for ask in asks:
        seqs = _lines(ask.seq, ask.ended_seq)
        most = f"{ask.bound.input_tokens} + {ask.bound.output_tokens} tokens"
        if ask.bound.dollars is not None:
            most += f", ${ask.bound.dollars:.4f}"
        spent = f"its bound counts as spent ({most})"
        if ask.lossy:
            yield "lossy", seqs, f"the reply for turn {ask.turn} could not be kept exactly as it came"
        if ask.came == "lost":
            yield "lost-ask", seqs, f"the reply to the request for turn {ask.turn} never came; {spent}"
        if ask.came == "failed" and ask.billed:
            yield "billed-failure", seqs, f"a request for turn {ask.turn} failed and may have been billed; {spent}"
    yield from _summaries([ask for ask in asks if ask.came == "replied" and ask.usage is not None])


def _summaries(asks: list[AskStory]) -> Iterator[Found]:
    """Summaries between two turns of which the second was not at least a quarter shorter."""
    for before, summary, after in zip(asks, asks[1:], asks[2:], strict=False):
        if (before.purpose, summary.purpose, after.purpose) != ("turn", "summary", "turn"):
            continue
        then, since = (ask.usage.input_tokens if ask.usage is not None else 0 for ask in (before, after))
        if 4 * since > 3 * then:
            says = (
                f"the summary before turn {after.turn} shrank the conversation too little: the request before it had "
                f"{then:,} tokens, the one after it {since:,}"
            )
            yield "summary-no-use", _lines(summary.seq, summary.ended_seq), says


def _call(call: CallStory) -> Iterator[Found]:
    name = f"{call.tool} ({call.id})"
    for before, attempt in itertools.pairwise(call.attempts):
        says = f"{name} ran again, attempt {attempt.n}: {_why_again(attempt)}"
        yield "rerun", _lines(before.seq, attempt.seq), says
    for question in call.questions:
        yield from _question(name, question)
    last = call.ended_seq if call.ended_seq is not None else call.seq
    whole = _lines(call.seq, last)
    if call.how == "refused" and call.first is not None:
        yield "intent-refused", whole, f"{name} was not run: call {call.first} had already done the same"
    if call.how == "no_output":
        yield "reply-refused", whole, f"the answer in turn {call.turn} was refused: {call.text}"
    if call.how == "found":
        says = f"{name} may have acted when it was interrupted; the service was asked, and it had happened"
        yield "settled-by-service", _lines(call.attempts[-1].seq if call.attempts else call.seq, last), says
    if call.lossy:
        yield "lossy", (last,), f"the result of {name} could not be kept exactly as it came; its text says what is lost"
    if call.in_doubt:
        acted = tuple(a.seq for a in call.attempts if a.did in ("in doubt", "unknown", "in flight"))
        yield "in-doubt", acted, f"{name} may have happened, and nothing settles it yet"


def _lines(first: int, last: int | None) -> tuple[int, ...]:
    return (first,) if last is None or last == first else (first, last)


def _why_again(attempt: AttemptStory) -> str:
    if attempt.rung == "harmless":
        return f"a repeat was safe: {_HARMLESS[attempt.effect]}"
    if attempt.rung == "nothing":
        return "the attempt before certainly did nothing"
    who = "the service" if attempt.rung == "missing" else "a person"
    return f"{who} said that no attempt so far had done anything"


def _question(name: str, question: QuestionStory) -> Iterator[Found]:
    if question.answer is None or question.ended_seq is None:
        return
    seqs = _lines(question.seq, question.ended_seq)
    said = f": {question.text}" if question.text else ""
    if question.kind == "settle":
        yield "settled-by-person", seqs, f"{question.who} settled {name} with {question.answer}{said}"
    else:
        kind = "approved" if question.answer == "approve" else "refused"
        yield kind, seqs, f"{question.who} {kind} {name}{said}"


def of_event(event: e.AnyEvent, before: State, life: int, seq: int) -> Iterator[Finding]:
    """The finding that an event is by itself, if it is one; `before` is the state it met."""
    seqs = (seq,)
    match event:
        case e.RunForked():
            yield Finding(kind="forked", seqs=seqs, says=_forked(event))
        case e.ModelAsked() if event.rebuilt_upto > before.rebuilt_upto:
            sent = f"the first {event.rebuilt_upto} messages are sent rebuilt from here on"
            says = f"the model refused the conversation as it came; {sent}"
            yield Finding(kind="conversation-rebuilt", seqs=seqs, says=says)
        case e.ReplyRefused():
            says = f"the reply of turn {before.turns} was no answer, and the model was asked again: {event.why}"
            yield Finding(kind="reply-refused", seqs=seqs, says=says)
        case e.WorkspaceAccepted():
            files = ", ".join(file.path for file in event.files)
            says = f"{event.by} accepted files that were changed from outside: {files}"
            yield Finding(kind="workspace-accepted", seqs=seqs, says=says)
        case e.RequestRefused():
            says = f"{event.request}{event.who and f', by {event.who}'} was refused: {event.why}"
            yield Finding(kind="request-refused", seqs=seqs, says=says)
        case e.WorkspaceMoved():
            says = f"the workspace is {event.path} from here on{event.by and f', said {event.by}'}"
            yield Finding(kind="workspace-moved", seqs=seqs, says=says)
        case e.RunStopped():
            why = f"({event.reason}){event.detail and f': {event.detail}'}"
            says = f"the run was stopped in life {life}{' for good' if event.final else ''} {why}"
            yield Finding(kind="stopped", seqs=seqs, says=says)
        case e.LimitsChanged():
            yield Finding(kind="limits-changed", seqs=seqs, says=_limits(before.limits, event.limits))
        case e.UnknownEvent():
            says = f"here stands an event of a later version ({event.tag}), whose meaning is not known"
            yield Finding(kind="unknown-event", seqs=seqs, says=says)


def _forked(event: e.RunForked) -> str:
    guarded = ", ".join(f"{f.tool} ({f.call} of {f.run})" for f in event.fork_guard)
    said = "; ".join(f"{one.who}: {one.text}" for one in event.messages)
    told = guarded and f"; not to be done again: {guarded}", said and f"; messages that were not taken over: {said}"
    return f"it goes on from line {event.seq} of {event.parent}{''.join(told)}"


def _limits(before: Limits, after: Limits) -> str:
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in Limits.__struct_fields__]
    changed = [f"{name} {_limit(was)} -> {_limit(now)}" for name, was, now in pairs if was != now]
    return f"the limits changed: {', '.join(changed)}"


def _limit(value: object) -> str:
    return "unlimited" if value is None else f"{value:g}" if isinstance(value, int | float) else f"{value}"


def expired(call: str, first: Attempt, seq: int, *, clock_back: bool) -> Finding:
    """The finding about a key that was too old, or of unknown age, to be sent again."""
    why = "the clock was set back since" if clock_back else f"it was remembered for {first.key_ttl:g} s"
    says = f"{call} could not run again with its key, first sent at {first.marked:%Y-%m-%d %H:%M:%S}: {why}"
    return Finding(kind="key-expired", seqs=(seq,), says=says, call=call)
