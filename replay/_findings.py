"""Findings: what deserves a second look, each with the lines that show it and a sentence. The guide lists the kinds."""

from collections.abc import Callable, Iterator
from typing import Any

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


def find(told: Audit, noted: list[Finding]) -> list[Finding]:
    """All findings of a story, in the order of their first lines. `noted` are those found in single events."""
    found = [*noted, *_lives(told), *_asks(told.asks)]
    for call in told.calls:
        found += _call(call)
    return sorted(found, key=lambda finding: finding.seqs)


def _lives(told: Audit) -> Iterator[Finding]:
    for life in told.lives:
        if life.clock_back:
            says = f"life {life.life} began with the wall clock set back; older keys count as forgotten"
            yield Finding(kind="clock-back", seqs=(life.seq,), says=says)
        if life.drift:
            says = f"life {life.life} began with other definitions than the one before: {', '.join(life.drift)}"
            yield Finding(kind="drift", seqs=(life.seq,), says=says)


def _asks(asks: list[AskStory]) -> Iterator[Finding]:
    for ask in asks:
        seqs = _lines(ask.seq, ask.ended_seq)
        most = f"{ask.bound.input_tokens} + {ask.bound.output_tokens} tokens"
        if ask.bound.dollars is not None:
            most += f", ${ask.bound.dollars:.4f}"
        if ask.lossy:
            says = f"the reply for turn {ask.turn} could not be kept exactly as it came"
            yield Finding(kind="lossy", seqs=seqs, says=says)
        if ask.came == "lost":
            says = f"the reply to the request for turn {ask.turn} never came; its bound counts as spent ({most})"
            yield Finding(kind="lost-ask", seqs=seqs, says=says)
        if ask.came == "failed" and ask.billed:
            says = f"a request for turn {ask.turn} failed and may have been billed; its bound counts as spent ({most})"
            yield Finding(kind="billed-failure", seqs=seqs, says=says)
    yield from _summaries([ask for ask in asks if ask.came == "replied" and ask.usage is not None])


def _summaries(asks: list[AskStory]) -> Iterator[Finding]:
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
            yield Finding(kind="summary-no-use", seqs=_lines(summary.seq, summary.ended_seq), says=says)


def _call(call: CallStory) -> Iterator[Finding]:
    name = f"{call.tool} ({call.id})"
    for attempt in call.attempts:
        yield from _attempt(call, name, attempt)
    for question in call.questions:
        yield from _question(call.id, name, question)
    last = call.ended_seq if call.ended_seq is not None else call.seq
    if call.how == "refused" and call.first is not None:
        says = f"{name} was not run: call {call.first} had already done the same"
        yield Finding(kind="intent-refused", seqs=_lines(call.seq, last), says=says, call=call.id)
    if call.how == "no_output":
        says = f"the answer in turn {call.turn} was refused: {call.text}"
        yield Finding(kind="reply-refused", seqs=_lines(call.seq, last), says=says, call=call.id)
    if call.how == "found":
        says = f"{name} may have acted when it was interrupted; the service was asked, and it had happened"
        tried = call.attempts[-1].seq if call.attempts else call.seq
        yield Finding(kind="settled-by-service", seqs=_lines(tried, last), says=says, call=call.id)
    if call.lossy:
        says = f"the result of {name} could not be kept exactly as it came; its text says what is lost"
        yield Finding(kind="lossy", seqs=(last,), says=says, call=call.id)
    if call.in_doubt:
        acted = tuple(a.seq for a in call.attempts if a.did in ("in doubt", "unknown", "in flight"))
        yield Finding(
            kind="in-doubt", seqs=acted, says=f"{name} may have happened, and nothing settles it yet", call=call.id
        )


def _lines(first: int, last: int | None) -> tuple[int, ...]:
    return (first,) if last is None or last == first else (first, last)


def _attempt(call: CallStory, name: str, attempt: AttemptStory) -> Iterator[Finding]:
    if attempt.n == 1:
        return
    why = {
        "harmless": f"a repeat was safe: {_HARMLESS[attempt.effect]}",
        "missing": "the service said that no attempt so far had done anything",
        "person": "a person said that no attempt so far had done anything",
        "nothing": "the attempt before certainly did nothing",
        "first": "nothing was tried before",
    }[attempt.rung]
    before = call.attempts[attempt.n - 2]
    says = f"{name} ran again, attempt {attempt.n}: {why}"
    yield Finding(kind="rerun", seqs=_lines(before.seq, attempt.seq), says=says, call=call.id)


def _question(call: str, name: str, question: QuestionStory) -> Iterator[Finding]:
    if question.answer is None or question.ended_seq is None:
        return
    seqs = _lines(question.seq, question.ended_seq)
    said = f": {question.text}" if question.text else ""
    if question.kind == "settle":
        says = f"{question.who} settled {name} with {question.answer}{said}"
        yield Finding(kind="settled-by-person", seqs=seqs, says=says, call=call)
    else:
        kind = "approved" if question.answer == "approve" else "refused"
        yield Finding(kind=kind, seqs=seqs, says=f"{question.who} {kind} {name}{said}", call=call)


def _forked(event: e.RunForked, _before: State, _life: int) -> str:
    guarded = ", ".join(f"{f.tool} ({f.call} of {f.run})" for f in event.fork_guard)
    said = "; ".join(f"{one.who}: {one.text}" for one in event.messages)
    told = guarded and f"; not to be done again: {guarded}", said and f"; messages that were not taken over: {said}"
    return f"it goes on from line {event.seq} of {event.parent}{''.join(told)}"


def _rebuilt(event: e.ModelAsked, before: State, _life: int) -> str:
    if event.rebuilt_upto <= before.rebuilt_upto:
        return ""
    sent = f"the first {event.rebuilt_upto} messages are sent rebuilt from here on"
    return f"the model refused the conversation as it came; {sent}"


def _stopped(event: e.RunStopped, _before: State, life: int) -> str:
    detail = f": {event.detail}" if event.detail else ""
    return f"the run was stopped in life {life}{' for good' if event.final else ''} ({event.reason}){detail}"


def _limits(event: e.LimitsChanged, before: State, _life: int) -> str:
    was, now = ({name: getattr(of, name) for name in Limits.__struct_fields__} for of in (before.limits, event.limits))
    changed = [f"{name} {_limit(was[name])} -> {_limit(now[name])}" for name in was if was[name] != now[name]]
    return f"the limits changed: {', '.join(changed)}"


def _limit(value: object) -> str:
    return "unlimited" if value is None else f"{value:g}" if isinstance(value, int | float) else f"{value}"


OF_EVENTS: dict[type, tuple[str, Callable[[Any, State, int], str]]] = {
    e.RunForked: ("forked", _forked),
    e.ModelAsked: ("conversation-rebuilt", _rebuilt),
    e.ReplyRefused: (
        "reply-refused",
        lambda event, before, _: (
            f"the reply of turn {before.turns} was no answer, and the model was asked again: {event.why}"
        ),
    ),
    e.WorkspaceAccepted: (
        "workspace-accepted",
        lambda event, *_: (
            f"{event.by} accepted files that were changed from outside: {', '.join(file.path for file in event.files)}"
        ),
    ),
    e.RequestRefused: (
        "request-refused",
        lambda event, *_: f"{event.request}{event.who and f', by {event.who}'} was refused: {event.why}",
    ),
    e.WorkspaceMoved: (
        "workspace-moved",
        lambda event, *_: f"the workspace is {event.path} from here on" + (event.by and f", said {event.by}"),
    ),
    e.RunStopped: ("stopped", _stopped),
    e.LimitsChanged: ("limits-changed", _limits),
    e.UnknownEvent: (
        "unknown-event",
        lambda event, *_: f"here stands an event of a later version ({event.tag}), whose meaning is not known",
    ),
}
"""Events that are worth a look by themselves: the kind of the finding, and its sentence; "" is no finding."""


def of_event(event: e.AnyEvent, before: State, life: int, seq: int) -> Iterator[Finding]:
    """The finding that an event is by itself, if it is one; `before` is the state it met."""
    kind, words = OF_EVENTS.get(type(event), ("", None))
    says = words(event, before, life) if words is not None else ""
    if says:
        yield Finding(kind=kind, seqs=(seq,), says=says)


def expired(call: str, first: Attempt, seq: int, *, clock_back: bool) -> Finding:
    """The finding about a key that was too old, or of unknown age, to be sent again."""
    why = "the clock was set back since" if clock_back else f"it was remembered for {first.key_ttl:g} s"
    says = f"{call} could not run again with its key, first sent at {first.marked:%Y-%m-%d %H:%M:%S}: {why}"
    return Finding(kind="key-expired", seqs=(seq,), says=says, call=call)
