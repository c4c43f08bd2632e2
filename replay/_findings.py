"""Findings: what an auditor would underline, each with the lines that show it and a sentence (spec row 27).

kind                 what it says
settled-by-person    a person said what an interrupted call did
settled-by-service   the service was asked, and an interrupted call had happened
approved, refused    a person (or the policy) said whether a call may run
rerun                a call ran again, and why that was harmless
key-expired          a call could not run again, because its key may have been forgotten
intent-refused       a call was refused because its intent already happened
lost-ask             a reply never came, and the bound of its ask counts as spent
billed-failure       an ask failed that may have been billed
clock-back           a life found the wall clock behind the log
workspace-accepted   somebody vouched for files that were changed from outside
forked               the run goes on from a line of another one, and what that did behind it is fenced
drift                a life runs with other definitions than the one before
limits-changed       from here on the run may use more, or less
lossy                a result or a reply could not be kept exactly as it came
open                 a call may have happened, and nothing settles it
stopped              a life ended by a stop, whether or not another went on
unknown-event        an event of a later version, which this one can't tell
"""

from __future__ import annotations

from collections.abc import Iterator

from replay._state import Stopped
from replay._story import AskStory, AttemptStory, Audit, CallStory, Finding, QuestionStory
from replay._values import Fenced, Limits

_HARMLESS = {
    "reads": "it only reads",
    "idempotent": "its tool is idempotent",
    "keyed": "the service still remembered its key",
    "once": "nothing",
}


def find(told: Audit, noted: list[Finding]) -> list[Finding]:
    """All findings of a story, in the order of their first lines. `noted` are those that only the events show."""
    found = [*noted, *_lives(told), *_asks(told.asks)]
    for call in told.calls:
        found += _call(call)
    return sorted(found, key=lambda finding: finding.seqs)


def _lives(told: Audit) -> Iterator[Finding]:
    for life in told.lives:
        if life.clock_back:
            says = f"life {life.life} found the wall clock behind the log; keys from before count as forgotten"
            yield Finding(kind="clock-back", seqs=(life.seq,), says=says)
        if life.drift:
            says = f"life {life.life} runs with other definitions than the one before: {', '.join(life.drift)}"
            yield Finding(kind="drift", seqs=(life.seq,), says=says)


def _asks(asks: list[AskStory]) -> Iterator[Finding]:
    for ask in asks:
        seqs = _lines(ask.seq, ask.ended_seq)
        most = f"{ask.bound.input_tokens} + {ask.bound.output_tokens} tokens"
        if ask.bound.dollars is not None:
            most += f", ${ask.bound.dollars:.4f}"
        if ask.came == "lost":
            says = f"the reply to the ask for turn {ask.turn} never came; its bound counts as spent ({most})"
            yield Finding(kind="lost-ask", seqs=seqs, says=says)
        if ask.came == "failed" and ask.billed:
            says = f"an ask for turn {ask.turn} failed and may have been billed; its bound counts as spent ({most})"
            yield Finding(kind="billed-failure", seqs=seqs, says=says)


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
    if call.how == "found":
        says = f"{name} may have acted when it was interrupted; the service was asked, and it had happened"
        tried = call.attempts[-1].seq if call.attempts else call.seq
        yield Finding(kind="settled-by-service", seqs=_lines(tried, last), says=says, call=call.id)
    if call.lossy:
        yield Finding(
            kind="lossy", seqs=(last,), says=f"the result of {name} could not be kept exactly as it came", call=call.id
        )
    if call.open:
        acted = tuple(a.seq for a in call.attempts if a.did in ("open", "unknown", "in flight"))
        yield Finding(
            kind="open", seqs=acted, says=f"{name} may have happened, and nothing settles it yet", call=call.id
        )


def _lines(first: int, last: int | None) -> tuple[int, ...]:
    return (first,) if last is None or last == first else (first, last)


def _attempt(call: CallStory, name: str, attempt: AttemptStory) -> Iterator[Finding]:
    if attempt.n == 1:
        return
    why = {
        "harmless": f"a repeat was harmless: {_HARMLESS[attempt.effect]}",
        "missing": "the service said that no attempt so far had done anything",
        "person": "a person said that no attempt so far had done anything",
        "nothing": "the attempt before certainly did nothing",
        "first": "nothing was tried before",
    }[attempt.rung]
    before = call.attempts[attempt.n - 2]
    says = f"{name} ran again, attempt {attempt.n}: {why}"
    yield Finding(kind="rerun", seqs=_lines(before.seq, attempt.seq), says=says, call=call.id)


def _question(call: str, name: str, question: QuestionStory) -> Iterator[Finding]:
    if question.answer is None or question.answered_seq is None:
        return
    seqs = _lines(question.seq, question.answered_seq)
    said = f": {question.text}" if question.text else ""
    if question.kind == "settle":
        says = f"{question.who} settled {name} with {question.answer}{said}"
        yield Finding(kind="settled-by-person", seqs=seqs, says=says, call=call)
    else:
        kind = "approved" if question.answer == "approve" else "refused"
        yield Finding(kind=kind, seqs=seqs, says=f"{question.who} {kind} {name}{said}", call=call)


def stop(life: int, stopped: Stopped, seq: int) -> Finding:
    """A stop, at the line that says it."""
    final = " for good" if stopped.final else ""
    detail = f": {stopped.detail}" if stopped.detail else ""
    says = f"the run was stopped in life {life}{final} ({stopped.reason}){detail}"
    return Finding(kind="stopped", seqs=(seq,), says=says)


def forked(parent: str, line: int, fence: tuple[Fenced, ...], seq: int) -> Finding:
    """What a fork comes from, and what it must not do again."""
    known = f"; not to be done again: {', '.join(f'{f.tool} ({f.call} of {f.run})' for f in fence)}" if fence else ""
    return Finding(kind="forked", seqs=(seq,), says=f"it goes on from line {line} of {parent}{known}")


def limits(was: Limits, now: Limits, seq: int) -> Finding:
    """Other limits from line `seq` on: what they were and are."""
    changed = [f for f in Limits.__struct_fields__ if getattr(was, f) != getattr(now, f)]
    each = ", ".join(f"{f} {_limit(getattr(was, f))} -> {_limit(getattr(now, f))}" for f in changed)
    return Finding(kind="limits-changed", seqs=(seq,), says=f"the limits are others from here on: {each}")


def _limit(value: float | None) -> str:
    return "unlimited" if value is None else f"{value:g}"


def unknown(tag: str, seq: int) -> Finding:
    """An event that only a later version can tell."""
    says = f"an event of a later version ({tag}) stands here, and what it means is not told"
    return Finding(kind="unknown-event", seqs=(seq,), says=says)
