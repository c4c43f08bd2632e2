"""A worker on a terminal: its runs, newest first, and what it could not do. Elsewhere nothing is drawn."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import replay
import runner
from replay import State
from runner._cli._io import out
from runner._cli._render import event_text
from runner._cli._render.escape import one_line

MOST = 20
"""Runs that are shown."""


class View:
    """Draws nothing."""

    def saved(self, state: State, _events: Sequence[replay.AnyEvent]) -> None:
        """Take note of what a run saved."""

    def table(self, worker: runner.Worker) -> None:
        """Show what a worker carries now."""


class Table(View):
    """A table that is drawn anew; what a run came to stays above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._states: dict[str, State] = {}
        self.live = Live(
            console=Console(highlight=False, markup=False, emoji=False), auto_refresh=False, transient=True
        )

    def saved(self, state: State, _events: Sequence[replay.AnyEvent]) -> None:
        """Keep the newest state."""
        self._states[state.run] = state

    def table(self, worker: runner.Worker) -> None:
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
def view() -> Iterator[View]:
    """The view that fits where stdout goes."""
    if not out.on_terminal() or os.environ.get("TERM", "dumb") == "dumb":
        yield View()
        return
    table = Table()
    with table.live:
        yield table
