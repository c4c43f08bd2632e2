"""`refold audit`: the story of a run, and what an auditor would underline, from its log alone.

Turns, calls and attempts are told in their order; a life's heading stands before the first of them that it wrote.
"""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

import runner
from replay import AskStory, Audit, CallStory, WaitStory
from runner._cli import _options, _out, _told, _words
from runner._cli._errors import Status, leave, say

LEAST, USUAL = 40, 110
"""Characters of a payload that are shown on its line: at least, and where no terminal has a width."""

MAX_LINE = 2_000
"""Characters of any other line."""

ASK, CALL = 1, 2
"""How deep an ask and a call are set in."""

Told = tuple[int, int, str]
"""The line that begins it, how deep it is set in, and the words."""


@click.command()
@_options.run
@_options.runs
@_options.json
def audit(run: str, runs: Path, *, as_json: bool) -> None:
    """Tell what RUN did, and what an auditor would underline.

    Lives, turns, calls with every attempt, questions with who answered; each finding with the lines that show it. On a
    damaged log: what holds, and up to where.
    """
    audited = runner.audit(run, runs)
    if as_json:
        _out.as_json(facts(audited))
    else:
        _out.rows(list(_head(audited)))
        _findings(audited.story)
        width = max(shutil.get_terminal_size().columns, LEAST) if _out.on_terminal() else USUAL
        _tell(audited.story, width)
    if audited.problem is not None:
        say(audited.problem)
        leave(Status.DAMAGED)


def facts(audited: runner.Audited) -> dict[str, Any]:
    """What `--json` prints: the story's own fields, and what only the disk knows."""
    story: dict[str, Any] = msgspec.to_builtins(audited.story)
    return {
        **story,
        "run": audited.run,
        "storage": audited.storage,
        "damaged": None if audited.problem is None else str(audited.problem),
    }


def _head(audited: runner.Audited) -> Iterator[_out.Row]:
    story = audited.story
    yield "run", audited.run
    if not story.lives:
        return
    yield "task", story.task
    yield "agent", story.agent
    if story.parent is not None:
        yield "forked from", story.parent
    stopped = story.stopped
    yield "phase", story.phase + (f", stopped: {stopped.reason}" if stopped is not None else "")
    yield "spent", f"{_words.money(story.spent.total_dollars)}; {story.spent.tokens:,} tokens"
    if story.spent.lost_asks:
        lost = story.spent
        yield "of it lost", f"{_words.money(lost.lost_dollars)}, the bounds of {lost.lost_asks} asks without a reply"
    worked, whole = _told.spans(story)
    yield "time", f"{_told.took(worked)} at work, {_told.took(whole)} from the first line to the last"
    if audited.storage is not None:
        yield "storage", f"{audited.storage.kind}; survives a {audited.storage.survives}"


def _findings(story: Audit) -> None:
    _out.out()
    if not story.findings:
        _out.heading("No findings")
        return
    _out.heading("Findings")
    _out.table(
        ("KIND", "LINES", "WHAT"),
        [(f.kind, ", ".join(str(seq) for seq in f.seqs), _out.line(f.says, MAX_LINE)) for f in story.findings],
    )


def _tell(story: Audit, width: int) -> None:
    """The story, with the heading of each life where its first line is told."""
    ahead = list(story.lives)
    within = ""
    for seq, depth, words in _events(story, width):
        while ahead and ahead[0].seq <= seq:
            _life(story, len(story.lives) - len(ahead))
            ahead.pop(0)
            if depth > CALL:  # what follows belongs to a call of an earlier life
                _out.out(f"{'  ' * CALL}{within}")
        within = words if depth == CALL else within
        _out.out(f"{'  ' * depth}{words}")
    for index in range(len(story.lives) - len(ahead), len(story.lives)):
        _life(story, index)
    if story.lives:
        _out.out()
        last = story.lives[-1]
        _out.out(f"Life {last.life}: {_out.line(_told.end(last, last=True))}, {_told.moment(last.ended)}")


def _life(story: Audit, index: int) -> None:
    life = story.lives[index]
    _out.out()
    if index:
        _out.out(f"({_out.line(_told.gap(life, story.lives[index - 1]))})")
        _out.out()
    _out.heading(f"Life {life.life}  {_told.moment(life.began)}  {_out.line(_told.life(life))}")
    where, lasted = _told.lines(life.seq, life.last_seq), _told.between(life.began, life.ended)
    _out.out(f"  {where}, {lasted}" + (f"; other definitions: {', '.join(life.drift)}" if life.drift else ""))


def _events(story: Audit, width: int) -> Iterator[Told]:
    """Everything that is told below the headings, in its order: asks, the waits between them, their calls."""
    calls = {call.id: call for call in story.calls}
    waits: defaultdict[str, list[WaitStory]] = defaultdict(list)
    for wait in story.waits:
        before = bisect_right(story.asks, wait.seq, key=lambda ask: ask.seq) - 1
        waits[wait.call or f"ask {before}"].append(wait)
    for index, ask in enumerate(story.asks):
        yield from _ask(ask, width)
        for wait in waits[f"ask {index}"]:
            yield wait.seq, CALL, f"{_told.wait(wait)}  (line {wait.seq})"
        for name in ask.calls:
            yield from _call(calls[name], waits[name], width)


def _ask(ask: AskStory, width: int) -> Iterator[Told]:
    what = f"Turn {ask.turn}" if ask.purpose == "turn" else "Summary"
    where = _told.lines(ask.seq, ask.ended_seq)
    yield ask.seq, ASK, _out.line(f"{what}  {ask.model or 'model'}: {_told.ask(ask)}  ({where})", MAX_LINE)
    if ask.text:
        yield ask.seq, ASK + 1, _out.line(f"says {ask.text}", width - 4)


def _questions(call: CallStory) -> Iterator[tuple[int, str]]:
    """The questions about a call, and their answers, which another life may have brought."""
    for question in call.questions:
        if question.answered_seq is None or question.answered_seq == question.seq:
            yield question.seq, f"question {question.id}: {_told.question(question)}"
        else:
            yield question.seq, f"question {question.id}: {_told.asked(question)}"
            yield question.answered_seq, f"answer to {question.id}: {_told.answered(question)}"


def _call(call: CallStory, waits: list[WaitStory], width: int) -> Iterator[Told]:
    yield call.seq, CALL, _out.line(f"{call.id} {call.tool} {call.arguments}", width - 4)
    happened = [
        *_questions(call),
        *((a.seq, f"attempt {a.n}: {_told.attempt(a)}; key {a.key}") for a in call.attempts),
        *((look.seq, f"asks the service: {_told.lookup(look)}") for look in call.lookups),
        *((wait.seq, _told.wait(wait)) for wait in waits),
        *(
            (call.ended_seq or call.seq, f"wrote {file.path}{'' if file.sha256 else ' (deleted)'}")
            for file in call.files
        ),
    ]
    for seq, words in sorted(happened, key=lambda each: each[0]):
        yield seq, CALL + 1, _out.line(f"{words}  (line {seq})", MAX_LINE)
    last = call.ended_seq or call.seq
    ended = "" if call.ended_seq is None else f" (line {call.ended_seq})"
    text = f": {call.text}" if call.text else ""
    yield last, CALL + 1, _out.line(f"{_told.result(call)}{ended}{text}", max(width - 6, LEAST))
