"""`refold worker`: a process that carries on every due run of some agents, until a signal ends it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

import click

import replay
import runner
from replay import State
from runner._cli import load_agent, options
from runner._cli._io import logging_setup, notify
from runner._cli._io.progress import is_drawable
from runner._cli._render import event_text
from runner._cli._render.escape import one_line


@click.command()
@load_agent.several
@options.runs
@click.option(
    "--at-once", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="Runs at once."
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0, max=86_400),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds that calls may take to end after SIGTERM or Ctrl-C.",
)
@notify.option
def worker(
    sources: Sequence[load_agent.Source], runs: str, at_once: int, grace: float, targets: tuple[str, ...]
) -> None:
    """Carry on every run that is due, until a signal ends it.

    SIGTERM and Ctrl-C let what is in flight end, and give every run back; a second one ends the process at once. On a
    terminal there is a table of the runs; elsewhere each start, rest and problem is a line of JSON on stdout.
    """
    agents = [source.agent() for source in sources]
    if not is_drawable(sys.stdout):
        logging_setup.as_json_lines()
    asyncio.run(_work(agents, runs, at_once, grace, targets))


async def _work(agents: Sequence[runner.Agent], runs: str, at_once: int, grace: float, targets: Sequence[str]) -> None:
    left, telling = asyncio.Event(), notify.Notifier(targets, runs)

    def leave(*_: object) -> None:
        if left.is_set():
            os._exit(1)
        left.set()

    def saved(state: State, events: Sequence[replay.AnyEvent]) -> None:
        if show is not None:
            show.saved(state)
        telling.saved(state, events)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)  # the loop hears none while a line waits for a reader, and looks twice a second
    show = Table() if is_drawable(sys.stdout) else None
    with contextlib.nullcontext() if show is None else show.live:
        told = asyncio.create_task(telling.run())
        async with runner.Worker(agents, runs=runs, at_once=at_once, grace=grace, watch=saved) as carrying:
            while not left.is_set():
                if show is not None:
                    show.table(carrying)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await left.wait()
        told.cancel()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(0)  # a tool that does not end would hold the process, and its run's lock with it


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
