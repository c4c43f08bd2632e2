"""What a form does to a run: the same public functions as every other program's, after a look at what has changed.

A form carries the line that its page showed, and an answer the digest of the arguments too. Where the run has moved on
since, nothing is done, and the events since then are shown. The log decides between two who answer at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import eventlog
import replay
import runner
from replay import State
from runner._cli._render import event_text
from runner._cli._render.escape import one_line

MOST = 50
"""Events since a page was made that are shown."""


class NotDone(Exception):
    """Nothing was changed: why, and what happened since the page was made."""

    def __init__(self, why: str, since: list[str] | None = None) -> None:
        super().__init__(why)
        self.since = since or []


def answer(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> None:
    """Answer a question. Raises `NotDone`, and what `runner.approve` and its like raise."""
    question, text, verdict = form["question"], form.get("text", ""), form["verdict"]
    state = runner.read_state(run, store)
    asked = next((one for one in state.waiting if one.id == question), None)  # its own, or a child's
    if asked is not None:
        if asked.digest != form["digest"]:
            raise NotDone(f"{question} is asked with other arguments now; look at them before you answer.")
        unmoved(store, state, form)
    given: dict[str, Callable[[], object]] = {
        "approve": lambda: runner.approve(run, question, who, runs=store),
        "refuse": lambda: runner.refuse(run, question, who, text, runs=store),
        "edit": lambda: runner.edit(run, question, who, _object(text), runs=store),
        "respond": lambda: runner.respond(run, question, who, text, runs=store),
        "done": lambda: runner.settle(run, question, who, "done", text, runs=store),
        "rerun": lambda: runner.settle(run, question, who, "rerun", text, runs=store),
        "failed": lambda: runner.settle(run, question, who, "failed", text, runs=store),
    }
    if verdict not in given:
        raise NotDone(f"{verdict!r} is no answer.")
    given[verdict]()


def stop(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> None:
    """Stop a run for good."""
    unmoved(store, runner.read_state(run, store), form)
    runner.stop(run, who, runs=store)


def park(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> None:
    """Hold a run back. Nothing about it depends on what the page showed."""
    del form
    runner.park(run, who, runs=store)


def send(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> None:
    """Write to a run; it hears it whatever happened since."""
    runner.send(run, form["text"], who, runs=store)


def fork(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> str:
    """Go on from a line in another run; its id."""
    unmoved(store, runner.read_state(run, store), form)
    return runner.fork(run, at=int(form["at"]), runs=store, who=who).run


FORMS: dict[str, Callable[..., str | None]] = {
    "answer": answer,
    "park": park,
    "stop": stop,
    "send": send,
    "fork": fork,
}


def unmoved(store: eventlog.Store, state: State, form: Mapping[str, str]) -> None:
    """Raise `NotDone` if a run is not at the line that the form's page showed."""
    line = int(form["line"])
    if state.seq != line:
        why = f"{state.run} is at line {state.seq} now, and the page showed line {line}. Nothing was changed."
        raise NotDone(why, since(store, state.run, line))


def since(store: eventlog.Store, run: str, after: int) -> list[str]:
    """What happened after a line, in words."""
    state, told = replay.NEW, list[str]()
    for line in store.read(run).lines:
        for raw in line.events:
            event = replay.decode(raw, seq=line.seq)
            state = replay.step(state, event, line.at, seq=line.seq)
            if line.seq > after:
                said = runner.review.redact(event_text.event(event, state), runner.review.SECRET_PATTERNS)
                told.append(f"line {line.seq}: {one_line(said, 400)}")
    return told[-MOST:]


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise NotDone(f"The arguments are no JSON: {error}. Nothing was changed.") from None
    if not isinstance(found, dict):
        raise NotDone("The arguments are no JSON object. Nothing was changed.")
    return found
