"""`refold fork`: a run goes on from an earlier line, as another run."""

from collections.abc import Iterator

import click

import eventlog
import replay
import runner
from replay import State
from replay.events import RunForked
from runner._cli import options
from runner._cli._io import out
from runner._cli._render import event_text
from runner._cli._render.escape import arguments, one_line


@click.command()
@options.run
@click.option("--at", type=click.IntRange(min=0), required=True, metavar="SEQ", help="The line it goes on from.")
@click.option("--run", "new", metavar="NEWID", help="The new run's id.", show_default="made as for a new run")
@options.runs
@options.by
def fork(run: str, at: int, new: str | None, runs: str, who: str) -> None:
    """Go on from an earlier line of RUN in a new run.

    RUN is stopped for good unless it is done. Anything RUN did after that line has already taken
    effect: a call that would do it again waits for a person. Messages that came after it are named here, and not
    taken over. The workspace must hold what it held at that line.
    """
    state = runner.fork(run, at=at, runs=runs, new=new, who=who)
    parent = runner.read_state(run, runs)
    (forked,) = eventlog.store(runs).read(state.run).lines[-1].events
    out.rows([*_page(state, parent), *_messages(replay.decode(forked))])
    out.err(f"Carry it on with: refold resume {state.run} --agent module:attr --runs {options.shown(runs)}")


def _messages(forked: replay.AnyEvent) -> Iterator[out.Row]:
    for one in forked.messages if isinstance(forked, RunForked) else ():
        yield "not heard", f"{one_line(one.who)}: {one_line(one.text)}"


def _page(state: State, parent: State) -> Iterator[out.Row]:
    yield "run", state.run
    yield "forked from", f"{parent.run}, which is {event_text.phase(parent)}"
    yield "phase", event_text.phase(state)
    yield from (("in doubt", f"{call} may have happened") for call in state.in_doubt)
    for effect in state.fork_guard:
        came = f"came to {effect.text}" if effect.happened else "may have happened"
        yield "guarded", f"{effect.call} {effect.tool} {arguments(effect.arguments)} {came}"
