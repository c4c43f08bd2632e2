"""Progress of a run, or of a worker's runs: a live view where a person watches a terminal.

Elsewhere a run is one plain line for each event, on stderr, and of a worker nothing is drawn.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from msgspec.structs import replace

import replay
import runner
from replay import State
from replay.events import ModelFailed, RunStopped
from runner._cli._io import out
from runner._cli._render import event_text
from runner._cli._render.escape import one_line


class Watch(Protocol):
    """A view of a run: called after each save with the state and the events it wrote."""

    state: State | None

    def __call__(self, state: State, events: Sequence[replay.AnyEvent]) -> None:
        """Show what was just saved."""
        ...

    def room(self) -> AbstractContextManager[None]:
        """While this lasts the view draws nothing."""
        ...


class Lines:
    """One plain line for each event; `name` is put before it where several runs are watched."""

    def __init__(self, name: str = "") -> None:
        self.state: State | None = None
        self._name = f"{name} " if name else ""

    def __call__(self, state: State, events: Sequence[replay.AnyEvent]) -> None:
        self.state = state
        for event in events:
            out.err(self._name + said(state, _briefly(state, event)))

    def room(self) -> AbstractContextManager[None]:
        return nullcontext()


def _briefly(state: State, event: replay.AnyEvent) -> replay.AnyEvent:
    """An event without the error of a model, which the command prints once, when it has given up."""
    if isinstance(event, ModelFailed):
        return replace(event, error=f"{event.error_type or 'error'}, {state.failures.count} in a row")
    if isinstance(event, RunStopped) and event.reason == "ModelUnavailable":
        return replace(event, detail=f"{state.failures.count} in a row failed")
    return event


def said(state: State, event: replay.AnyEvent) -> str:
    """One event with the time it was saved, on one line."""
    at = f"{state.at:%H:%M:%S} " if state.at is not None else ""
    return f"{at}{one_line(event_text.event(event, state))}"


@contextmanager
def view(runs: str) -> Iterator[Watch]:
    """The view of a run in `runs` that fits where stderr goes."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield Lines()
        return
    from runner._cli._io.live import Live

    with Live(runs=runs) as live:
        yield live


MOST = 20
"""Runs that are shown."""


class Table:
    """A table that is drawn anew; what a run came to stays above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._states: dict[str, State] = {}
        self.live = Live(
            console=Console(highlight=False, markup=False, emoji=False), auto_refresh=False, transient=True
        )

    def saved(self, state: State) -> None:
        """Take note of what a run saved."""
        self._states[state.run] = state

    def table(self, worker: "runner.Worker") -> None:
        """Draw the runs that are carried, and print those that no longer are."""
        from rich.text import Text

        active = worker.active
        for run in self._states.keys() - set(active):
            self.live.console.print(Text(_row(self._states.pop(run))))
        lines = [f"{len(active)} runs"]
        lines += [_row(state) for state in [*self._states.values()][-MOST:]]
        lines += [one_line(f"problem: {problem.what}: {problem.error}", 200) for problem in worker.problems.values()]
        self.live.update(Text("\n".join(lines)), refresh=True)


def _row(state: State) -> str:
    return one_line(f"{state.run}  {event_text.phase(state)}, turn {event_text.turns(state)}  {state.task}", 110)


@contextmanager
def worker_view() -> Iterator[Table | None]:
    """The view of a worker, if stdout is a terminal that can show one."""
    if not out.on_terminal() or os.environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    table = Table()
    with table.live:
        yield table
