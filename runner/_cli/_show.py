"""`refold show`: where a run stands, from its log alone; it takes no lock and starts nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

import eventlog
import replay
import runner
from replay import CallState, State
from runner._cli import _facts, _follow, _options, _out, _questions, _words
from runner._cli._errors import Refused, Status
from runner._cli._watch import said


@click.command()
@_options.run
@_options.runs
@click.option("--follow", is_flag=True, help="Print every event, and the coming ones until no process runs RUN.")
@click.option("--at", type=click.IntRange(min=0), metavar="SEQ", help="As it stood after line SEQ of the log.")
@_options.json
def show(run: str, runs: Path, *, follow: bool, at: int | None, as_json: bool) -> None:
    """Show where RUN stands: phase, spend, open calls, questions.

    --at shows where it stood once, which a damaged log tells too, up to its damage.
    """
    if follow and at is not None:
        message = "--follow shows every line, --at one; give one of them"
        raise click.UsageError(message)
    if follow:
        for seen in _follow.follow(runs, run):
            _print(seen, as_json=as_json)
        return
    state = runner.read(run, runs) if at is None else stood(run, runs, at)
    if as_json:
        _out.as_json(_facts.run(state))
        return
    _out.rows(list(page(state, runs, now=at is None)))


def stood(run: str, runs: Path, at: int) -> State:
    """The state after line `at`, from the first line on; what is damaged behind it does not matter.

    Raises what `eventlog.read` and the fold raise, and `Refused` for a line that is not there.
    """
    reading = eventlog.scan(runs, run)
    if at >= len(reading.lines):
        if reading.damage is not None:
            raise reading.damage
        last = len(reading.lines) - 1
        raise Refused(f"run {run} has no line {at}; its last is {last}", f"Give --at 0 to {last}.", Status.USAGE)
    return replay.load(reading.lines[: at + 1])


def _print(seen: _follow.Seen, *, as_json: bool) -> None:
    """One event: a line for people, or an object of one line for programs."""
    if not as_json:
        _out.out(said(seen.state, seen.event))
        return
    state = seen.state
    _out.as_json(
        {"seq": state.seq, "life": state.life, "at": state.at, "event": json.loads(bytes(seen.raw))}, indent=None
    )


def page(state: State, runs: Path, *, now: bool = True) -> Iterator[_out.Row]:
    """The page for people, row by row; `now` unless it is about the past, which nobody holds and nobody answers."""
    yield "run", state.run
    yield "task", state.task
    yield "agent", state.agent
    if state.parent is not None:
        yield "forked from", state.parent
    yield "phase", _words.phase(state)
    if state.stopped is not None:
        yield "because", state.stopped.detail
    yield "turns", _words.turns(state)
    yield "resumes", f"{state.resumes} of {state.limits.resumes}"
    yield "spent", _words.spent(state)
    holder = eventlog.lock_holder(runs, state.run) if now else None
    if holder is not None:
        yield "held by", f"process {holder.pid} on {holder.host}" if holder.pid else "a process that left no name"
    yield from ((f"call {call.call.id}", _call(call)) for call in state.calls if call.result is None)
    if state.wait is not None:
        yield "waits until", f"{state.wait.until:%Y-%m-%d %H:%M:%S} UTC ({state.wait.why})"
    for file in state.hashes():
        yield "wrote", file.path if file.sha256 is not None else f"{file.path} (deleted)"
    if state.waiting:
        told = _questions.lines(state, runs) if now else (row for q in state.waiting for row in _questions.asked(q))
        yield "waiting", "\n".join(told)
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
