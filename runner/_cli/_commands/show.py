"""`refold show`: where a run stands, from its log alone; it takes no lock and starts nothing."""

import json
import time
from collections.abc import Iterator
from typing import Any

import click

import eventlog
import replay
import runner
from replay import CallState, State
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused, Status
from runner._cli._io.progress import said
from runner._cli._render import as_json as _as_json
from runner._cli._render import audit_text, event_text, question_text
from runner._cli._render.escape import arguments, marked, name, one_line

BETWEEN = 0.25
"""Seconds between two looks at the log."""
SAID = 60
"""Characters of a message's beginning that are shown."""


@click.command()
@options.reads
@click.option("--follow", is_flag=True, help="Print every event, and the coming ones until no process runs RUN.")
@click.option("--at", type=click.IntRange(min=0), metavar="SEQ", help="As it stood after line SEQ of the log.")
def show(run: str, runs: str, *, follow: bool, at: int | None, as_json: bool) -> None:
    """Show where RUN stands: phase, spend, calls, questions.

    --at shows where it stood once, which a damaged log tells too, up to its damage.
    """
    if follow and at is not None:
        raise click.UsageError("--follow shows every line, --at one; give one of them")
    if follow:
        for seen in follow_log(runs, run):
            _print(seen, as_json=as_json)
        return
    state = runner.read_state(run, runs) if at is None else stood(run, runs, at)
    if as_json:
        out.as_json(_as_json.run(state))
        return
    out.rows(page(state, runs, now=at is None))


def stood(run: str, runs: str, at: int) -> State:
    """The state after line `at`, from the first line on; damage after it does not matter.

    Raises what `eventlog.Store.read` and the fold raise, and `Refused` for a line that is not there.
    """
    reading = eventlog.store(runs).scan(run)
    if at >= len(reading.lines):
        if reading.damage is not None:
            raise reading.damage
        last = len(reading.lines) - 1
        raise Refused(f"run {run} has no line {at}; its last is {last}", f"Give --at 0 to {last}.", Status.USAGE)
    return replay.load(reading.lines[: at + 1])


def follow_log(runs: str, run: str) -> Iterator[event_text.Seen]:
    """Every event as it comes, to the end of what a process that holds the run writes.

    Raises what `eventlog.Store.read` and the fold raise.
    """
    store, state, tail = eventlog.store(runs), replay.NEW, None
    while True:
        held = store.holder(run) is not None  # asked before the log is read, so that nothing is missed
        lines = tail.more() if tail is not None else None
        if lines is None:
            reading = store.read(run)
            tail, lines = store.tail(reading), [line for line in reading.lines if line.seq > state.seq]
        for seen in event_text.seen(lines, state):
            state = seen.state
            yield seen
        if not held:
            return
        time.sleep(BETWEEN)


def _print(seen: event_text.Seen, *, as_json: bool) -> None:
    """One event: a line for people, or an object of one line for programs."""
    if not as_json:
        out.out(said(seen.state, seen.event))
        return
    facts = _as_json.fields(seen.state, "seq life at")
    out.as_json({**facts, "event": json.loads(bytes(seen.raw))}, indent=None)


def page(state: State, runs: str, *, now: bool = True) -> Iterator[out.Row]:
    """The page for people, row by row; `now` unless it is about the past, which nobody holds and nobody answers."""
    yield "run", state.run
    yield "task", _foreign(state.task)
    yield "inputs", None if state.inputs is None else arguments(state.inputs)
    yield "agent", state.agent
    yield "forked from", state.parent
    yield "child of", None if (of := state.parent_call) is None else f"{of.run}, its call {of.call}"
    yield "phase", event_text.phase(state)
    yield "because", None if state.stopped is None else _foreign(state.stopped.detail)
    yield "turns", event_text.turns(state)
    yield "resumes", f"{state.resumes} of {state.limits.resumes} that may come to nothing"
    yield "spent", event_text.spent(state.spent, state.limits.dollars)
    holder = eventlog.store(runs).holder(state.run) if now else None
    if holder is not None:
        yield "held by", f"process {holder.pid} on {holder.host}" if holder.pid else "a process that left no name"
    yield from ((f"call {call.call.id}", _call(call)) for call in state.calls if call.result is None)
    yield "waits until", None if (wait := state.wait) is None else f"{audit_text.moment(wait.until)} ({wait.why})"
    for file in state.hashes():
        yield "wrote", one_line(file.path) + ("" if file.sha256 is not None else " (deleted)")
    if state.waiting:
        told = (
            question_text.lines(state, runs) if now else (row for q in state.waiting for row in question_text.asked(q))
        )
        yield "waiting", "\n".join(told)
    if state.queue:
        told = (f"{one_line(one.who)}: {one_line(one.text, SAID)}" for one in state.queue)
        yield "messages", "\n".join([f"{len(state.queue)} for the next request", *told])
    yield from (("allowed", _allowed(rule)) for rule in _as_json.rules(state))
    yield "unknown", f"events of a later version: {', '.join(state.unknown)}" if state.unknown else None
    if state.at is not None:
        yield "last saved", f"{audit_text.moment(state.at)}, line {state.seq}"
    yield "answer", _foreign(state.answer or "") if state.phase == "done" else None


def _call(call: CallState) -> str:
    """A call of the current reply that has no result yet."""
    shown = f"{call.call.tool} {arguments(call.call.arguments)}"
    if call.child is not None:
        child = call.child
        rests = f", {event_text.stopped(child.stop)}" if child.stop is not None else ""
        return f"{shown}\nrun {child.run} does it{rests}; {event_text.money(child.spent.total_dollars)} so far"
    if not call.attempts:
        return f"{shown}\nnot tried"
    last = call.attempts[-1]
    open_ = "in doubt: it may have happened" if call.in_doubt else "every attempt so far did nothing"
    error = f"\n{_foreign(last.traceback or last.error)}" if last.error else ""
    return f"{shown}\nattempt {last.n} ({last.effect}, key {last.key}), {open_}{error}"


def _allowed(rule: dict[str, Any]) -> str:
    """A standing yes."""
    values = ", ".join(f"{one_line(key)}={arguments(value)}" for key, value in rule["arguments"].items())
    ended = "" if rule["holds"] else " (no longer: the tool is declared otherwise now)"
    return f"{name(rule['tool'])} with {values or 'any arguments'}, by {one_line(rule['who'])}{ended}"


def _foreign(text: str) -> str:
    """A text of somebody else, with a mark before each line if there are several."""
    return "\n".join(marked(text, most=None)) if "\n" in text else text
