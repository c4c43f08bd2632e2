"""Findings: what an auditor would underline, each with the lines that show it and a sentence (spec row 27).

kind                 what it says
settled-by-person    a person said what an interrupted call did
approved, refused    a person (or the policy) said whether a call may run
rerun                a call ran again, and why that was harmless
key-expired          a call could not run again, because its key may have been forgotten
intent-refused       a call was refused because its intent already happened
lost-ask             a reply never came, and the bound of its ask counts as spent
billed-failure       an ask failed that may have been billed
clock-back           a life found the wall clock behind the log
workspace-accepted   somebody vouched for files that were changed from outside
drift                a life runs with other definitions than the one before
lossy                a result or a reply could not be kept exactly as it came
open                 a call may have happened, and nothing settles it
stopped              the run was stopped
"""

from __future__ import annotations

from collections.abc import Iterator

from replay._state import Stopped
from replay._story import AskStory, AttemptStory, Audit, CallStory, Finding, QuestionStory

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
    if told.stopped is not None:
        found.append(_stop(told.stopped, told.seq))
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
        seqs = (ask.seq,) if ask.ended_seq is None else (ask.seq, ask.ended_seq)
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
        yield from _question(name, question)
    last = call.ended_seq if call.ended_seq is not None else call.seq
    if call.how == "refused" and call.first is not None:
        says = f"{name} was not run: call {call.first} had already done the same"
        yield Finding(kind="intent-refused", seqs=(call.seq, last), says=says)
    if call.lossy:
        yield Finding(kind="lossy", seqs=(last,), says=f"the result of {name} could not be kept exactly as it came")
    acted = [a for a in call.attempts if a.did in ("open", "unknown", "in flight")]
    if call.how is None and acted and call.attempts[-1].did != "nothing":
        says = f"{name} may have happened, and nothing settles it yet"
        yield Finding(kind="open", seqs=tuple(a.seq for a in acted), says=says)


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
    yield Finding(kind="rerun", seqs=(before.seq, attempt.seq), says=says)


def _question(name: str, question: QuestionStory) -> Iterator[Finding]:
    if question.answer is None or question.answered_seq is None:
        return
    seqs = (question.seq, question.answered_seq)
    said = f": {question.text}" if question.text else ""
    if question.kind == "settle":
        says = f"{question.who} settled {name} with {question.answer}{said}"
        yield Finding(kind="settled-by-person", seqs=seqs, says=says)
    else:
        kind = "approved" if question.answer == "approve" else "refused"
        yield Finding(kind=kind, seqs=seqs, says=f"{question.who} {kind} {name}{said}")


def _stop(stopped: Stopped, seq: int) -> Finding:
    final = " for good" if stopped.final else ""
    detail = f": {stopped.detail}" if stopped.detail else ""
    return Finding(kind="stopped", seqs=(seq,), says=f"the run is stopped{final} ({stopped.reason}){detail}")
