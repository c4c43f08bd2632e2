"""Progress of a run where no terminal can show a live view: one plain line for each event, on stderr."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from msgspec.structs import replace

import replay
from replay import State
from replay.events import ModelFailed, RunStopped
from runner._cli._io import out
from runner._cli._render import event_text
from runner._cli._render.escape import one_line


class Watch:
    """A view of a run: called after each save with the state and the events it wrote.

    This one prints a plain line for each event; `name` is put before it where several runs are watched.
    """

    def __init__(self, name: str = "") -> None:
        self.state: State | None = None
        self._name = f"{name} " if name else ""
        self._failed = ""

    def __call__(self, state: State, events: Sequence[replay.AnyEvent]) -> None:
        """Show what was just saved."""
        self.state = state
        for event in events:
            out.err(self._name + said(state, self._briefly(state, event)))

    def room(self) -> AbstractContextManager[None]:
        """While this lasts the view draws nothing."""
        return nullcontext()

    def _briefly(self, state: State, event: replay.AnyEvent) -> replay.AnyEvent:
        """An event without a model's error that was shown before, or that the command prints as it ends."""
        if isinstance(event, RunStopped) and event.reason == "ModelUnavailable":
            return replace(event, detail="")
        if not isinstance(event, ModelFailed):
            return event
        is_new, self._failed = event.transient and event.error != self._failed, event.error
        if is_new:
            return event
        return replace(event, error=f"{event.error_type or 'error'}, {state.failures.count} in a row")


def said(state: State, event: replay.AnyEvent) -> str:
    """One event with the time it was saved, on one line."""
    at = f"{state.at:%H:%M:%S} " if state.at is not None else ""
    return f"{at}{one_line(event_text.event(event, state))}"


def is_drawable(stream: TextIO) -> bool:
    """Whether a person watches, on a terminal that can show a view."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
