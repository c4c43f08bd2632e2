"""What a form does to a run: the same public functions as every other program's, after a look at what has changed.

A form carries the line that its page showed, and an answer the digest of the arguments too. Where the run has moved on
since, nothing is done, and the events since then are shown. The log decides between two who answer at once.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

import eventlog
import runner
from replay import State
from runner._cli import options
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
    question, text = form["question"], form.get("text", "")
    verdict: Any = form["verdict"]
    state = runner.read_state(run, store)
    asked = next((one for one in state.waiting if one.id == question), None)  # its own, or a child's
    if asked is not None:
        if asked.digest != form["digest"]:
            raise NotDone(f"{question} is asked with other arguments now; look at them before you answer.")
        unmoved(store, state, form)
    if verdict in ("done", "rerun", "failed"):
        runner.settle(run, question, who, verdict, text, runs=store)
    elif verdict == "approve":
        runner.approve(run, question, who, runs=store)
    elif verdict == "refuse":
        runner.refuse(run, question, who, text, runs=store)
    elif verdict == "edit":
        runner.edit(run, question, who, _object(text), runs=store)
    elif verdict == "respond":
        runner.respond(run, question, who, text, runs=store)
    else:
        raise NotDone(f"{verdict!r} is no answer.")


def stop(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> None:
    unmoved(store, runner.read_state(run, store), form)
    runner.stop(run, who, runs=store)


def fork(store: eventlog.Store, run: str, who: str, form: Mapping[str, str]) -> str:
    """Go on from a line in another run; its id."""
    unmoved(store, runner.read_state(run, store), form)
    return runner.fork(run, at=int(form["at"]), runs=store, who=who).run


FORMS: dict[str, Callable[[eventlog.Store, str, str, Mapping[str, str]], object]] = {
    "answer": answer,
    "park": lambda store, run, who, _: runner.park(run, who, runs=store),
    "stop": stop,
    "send": lambda store, run, who, form: runner.send(run, form["text"], who, runs=store),
    "fork": fork,
}
"""What each does. Nothing about parking and writing depends on what the page showed."""


def unmoved(store: eventlog.Store, state: State, form: Mapping[str, str]) -> None:
    """Raise `NotDone` if a run is not at the line that the form's page showed."""
    line = int(form["line"])
    if state.seq != line:
        why = f"{state.run} is at line {state.seq} now, and the page showed line {line}. Nothing was changed."
        raise NotDone(why, since(store, state.run, line))


def since(store: eventlog.Store, run: str, after: int) -> list[str]:
    """What happened after a line, in words."""
    told = list[str]()
    for _, event, state in event_text.seen(store.read(run).lines):
        if state.seq > after:
            said = runner.review.redact(event_text.event(event, state), runner.review.SECRET_PATTERNS)
            told.append(f"line {state.seq}: {one_line(said, 400)}")
    return told[-MOST:]


def _object(text: str) -> dict[str, Any]:
    try:
        return options.json_object(text)
    except click.BadParameter as error:
        raise NotDone(f"The arguments are no JSON object: {error.message}. Nothing was changed.") from None
