"""`refold show`: where a run stands, from its log alone; it takes no lock and starts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

import eventlog
import runner
from replay import CallState, State
from runner._cli import _facts, _follow, _options, _out, _questions, _words
from runner._cli._watch import said


@click.command()
@_options.run
@_options.runs
@click.option("--follow", is_flag=True, help="Print every event, and the coming ones until no process runs RUN.")
@_options.json
def show(run: str, runs: Path, *, follow: bool, as_json: bool) -> None:
    """Show where RUN stands: phase, spend, open calls, questions."""
    if follow:
        for seen in _follow.follow(runs, run):
            _print(seen, as_json=as_json)
        return
    state = runner.read(run, runs)
    if as_json:
        _out.as_json(_facts.run(state))
        return
    _out.rows(list(page(state, runs)))


def _print(seen: _follow.Seen, *, as_json: bool) -> None:
    """One event: a line for people, or an object of one line for programs."""
    if not as_json:
        _out.out(said(seen.state, seen.event))
        return
    state = seen.state
    _out.as_json(
        {"seq": state.seq, "life": state.life, "at": state.at, "event": json.loads(bytes(seen.raw))}, indent=None
    )


def page(state: State, runs: Path) -> Iterator[_out.Row]:
    """The page for people, row by row."""
    yield "run", state.run
    yield "task", state.task
    yield "agent", state.agent
    yield "phase", _words.phase(state)
    if state.stopped is not None:
        yield "because", state.stopped.detail
    yield "turns", _words.turns(state)
    yield "resumes", f"{state.resumes} of {state.limits.resumes}"
    yield "spent", _words.spent(state)
    holder = eventlog.lock_holder(runs, state.run)
    if holder is not None:
        yield "held by", f"process {holder.pid} on {holder.host}" if holder.pid else "a process that left no name"
    yield from ((f"call {call.call.id}", _call(call)) for call in state.calls if call.result is None)
    if state.wait is not None:
        yield "waits until", f"{state.wait.until:%Y-%m-%d %H:%M:%S} UTC ({state.wait.why})"
    for file in state.hashes():
        yield "wrote", file.path if file.sha256 is not None else f"{file.path} (deleted)"
    if state.waiting:
        yield "waiting", "\n".join(_questions.lines(state, runs))
    if state.unknown:
        yield "unknown", f"events of a later version: {', '.join(state.unknown)}"
    if state.at is not None:
        yield "last saved", f"{state.at:%Y-%m-%d %H:%M:%S} UTC, line {state.seq}, life {state.life}"
    if state.phase == "done":
        yield "answer", state.answer or ""


def _call(call: CallState) -> str:
    """A call of the current reply that has no result yet."""
    told = f"{call.call.tool} {call.call.arguments}"
    if not call.attempts:
        return f"{told}\nnot tried"
    last = call.attempts[-1]
    open_ = "open: it may have happened" if call.open else "every attempt so far did nothing"
    error = f"\n{last.error}" if last.error else ""
    return f"{told}\nattempt {last.n} ({last.effect}, key {last.key}), {open_}{error}"
