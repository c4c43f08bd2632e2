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
from runner._cli._io import logging_setup, notify, out
from runner._cli._io.progress import worker_view


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
    if not out.on_terminal():
        logging_setup.as_json_lines()
    asyncio.run(_work(agents, runs, at_once, grace, targets))


async def _work(agents: Sequence[runner.Agent], runs: str, at_once: int, grace: float, targets: Sequence[str]) -> None:
    left, telling = asyncio.Event(), notify.Notifier(targets, runs)

    def leave() -> None:
        if left.is_set():
            os._exit(1)
        left.set()

    def saved(state: State, events: Sequence[replay.AnyEvent]) -> None:
        if show is not None:
            show.saved(state)
        telling.saved(state, events)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, leave)
    with worker_view() as show:
        told = asyncio.create_task(telling.run())
        async with runner.Worker(agents, runs=runs, at_once=at_once, grace=grace, watch=saved) as carrying:
            while not left.is_set():
                if show is not None:
                    show.table(carrying)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await left.wait()
        told.cancel()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a tool that does not end would hold the process, and its run's lock with it
