"""`refold audit`: what a run did, and what deserves a second look, from its log alone.

Turns, calls and attempts are told in their order; a life's heading stands before the first of them that it wrote.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import click
import msgspec

import runner
from replay import Audit
from replay.stories import AskStory, CallStory, LifeStory, WaitStory
from runner._cli import options
from runner._cli._io import out
from runner._cli._render import audit_text, event_text
from runner._cli._render.escape import marked, one_line

LEAST, USUAL = 40, 110
"""Characters of a payload that are shown on its line: at least, and where no terminal has a width."""

MAX_LINE = 2_000
"""Characters of any other line."""

ASK, CALL = 1, 2
"""How deep an ask and a call are set in."""

Told = tuple[int, int, str]
"""The line that begins it, how deep it is set in, and the words."""


@click.command()
@options.reads
def audit(run: str, runs: str, *, as_json: bool) -> None:
    """Tell what RUN did, and what deserves a second look.

    Lives, turns, calls with every attempt, questions with who answered; each finding with the lines that show it. On a
    damaged log: what holds, and up to where.
    """
    audited = runner.review.audit(run, runs)
    if as_json:
        out.as_json(facts(audited))
    else:
        out.rows(_head(audited))
        _findings(audited.story)
        width = max(shutil.get_terminal_size().columns, LEAST) if out.on_terminal() else USUAL
        _tell(audited.story, width)
    if audited.problem is not None:
        raise audited.problem


def facts(audited: runner.review.Audited) -> dict[str, Any]:
    """What `--json` prints: the story's own fields, and what only the disk knows."""
    story: dict[str, Any] = msgspec.to_builtins(audited.story)
    return {
        **story,
        "run": audited.run,
        "storage": audited.storage,
        "damaged": None if audited.problem is None else str(audited.problem),
    }


def _head(audited: runner.review.Audited) -> Iterator[out.Row]:
    story = audited.story
    yield "run", audited.run
    if not story.lives:
        return
    yield "task", one_line(story.task, MAX_LINE)
    yield "agent", story.agent
    yield "forked from", story.parent
    stopped = story.stopped
    yield "phase", story.phase + (f", {event_text.stopped(stopped)}" if stopped is not None else "")
    yield "spent", event_text.spent(story.spent, story.limits.dollars)
    worked, whole = audit_text.spans(story)
    yield "time", f"{audit_text.took(worked)} at work, {audit_text.took(whole)} from the first line to the last"
    yield "storage", None if (on := audited.storage) is None else f"{on.kind}; survives a {on.survives}"


def _findings(story: Audit) -> None:
    out.out()
    if not story.findings:
        out.heading("No findings")
        return
    out.heading("Findings")
    out.table(
        ("KIND", "LINES", "WHAT"),
        [(f.kind, ", ".join(str(seq) for seq in f.seqs), one_line(f.says, MAX_LINE)) for f in story.findings],
    )


def _tell(story: Audit, width: int) -> None:
    """The story, with the heading of each life where its first line is told."""
    ahead = [*zip(story.lives, [None, *story.lives], strict=False)]
    within = ""
    for seq, depth, words in _events(story, width):
        while ahead and ahead[0][0].seq <= seq:
            _life(*ahead.pop(0))
            if depth > CALL:  # what follows belongs to a call of an earlier life
                out.line(f"{'  ' * CALL}{within}")
        within = words if depth == CALL else within
        out.line(f"{'  ' * depth}{words}")
    for life, before in ahead:
        _life(life, before)
    if story.lives:
        out.out()
        last = story.lives[-1]
        out.line(f"Life {last.life}: {one_line(audit_text.end(last, last=True))}, {audit_text.moment(last.ended)}")


def _life(life: LifeStory, before: LifeStory | None) -> None:
    out.out()
    if before is not None:
        out.line(f"({one_line(audit_text.gap(life, before))})")
        out.out()
    out.heading(f"Life {life.life}  {audit_text.moment(life.began)}  {one_line(audit_text.life(life))}")
    where, lasted = audit_text.lines(life.seq, life.last_seq), audit_text.between(life.began, life.ended)
    out.line(f"  {where}, {lasted}" + (f"; other definitions: {', '.join(life.drift)}" if life.drift else ""))


def _events(story: Audit, width: int) -> Iterator[Told]:
    """Everything that is told below the headings, in its order: asks, the waits between them, their calls."""
    for each, waits in story.in_order():
        yield from _ask(each, waits, width) if isinstance(each, AskStory) else _call(each, waits, width)


def _ask(ask: AskStory, waits: list[WaitStory], width: int) -> Iterator[Told]:
    what = f"Turn {ask.turn}" if ask.purpose == "turn" else "Summary"
    where = audit_text.lines(ask.seq, ask.ended_seq)
    yield ask.seq, ASK, one_line(f"{what}  {ask.model or 'model'}: {audit_text.ask(ask)}  ({where})", MAX_LINE)
    if ask.text:
        yield ask.seq, ASK + 1, one_line(f"says {ask.text}", width - 4)
    for wait in waits:
        yield wait.seq, CALL, f"{audit_text.wait(wait)}  (line {wait.seq})"


def _questions(call: CallStory) -> Iterator[tuple[int, str]]:
    """The questions about a call, and their answers, which another life may have brought."""
    for question in call.questions:
        if question.ended_seq is None or question.ended_seq == question.seq:
            yield question.seq, f"question {question.id}: {audit_text.question(question)}"
        else:
            yield question.seq, f"question {question.id}: {audit_text.asked(question)}"
            yield question.ended_seq, f"answer to {question.id}: {audit_text.answered(question)}"


def _call(call: CallStory, waits: list[WaitStory], width: int) -> Iterator[Told]:
    yield call.seq, CALL, one_line(f"{call.id} {call.tool} {call.arguments}", width - 4)
    happened = [
        *_questions(call),
        *([(call.seq, f"the child run {call.child} does it")] if call.child is not None else ()),
        *((a.seq, f"attempt {a.n}: {audit_text.attempt(a)}; key {a.key}") for a in call.attempts),
        *((a.ended_seq or a.seq, each) for a in call.attempts for each in marked(a.traceback) if a.traceback),
        *((look.seq, f"asks the service: {audit_text.lookup(look)}") for look in call.lookups),
        *((wait.seq, audit_text.wait(wait)) for wait in waits),
        *(
            (call.ended_seq or call.seq, f"wrote {file.path}{'' if file.sha256 else ' (deleted)'}")
            for file in call.files
        ),
    ]
    for seq, words in sorted(happened, key=lambda each: each[0]):
        yield seq, CALL + 1, one_line(f"{words}  (line {seq})", MAX_LINE)
    last = call.ended_seq or call.seq
    ended = "" if call.ended_seq is None else f" (line {call.ended_seq})"
    text = f": {call.text}" if call.text else ""
    yield last, CALL + 1, one_line(f"{audit_text.result(call)}{ended}{text}", max(width - 6, LEAST))
