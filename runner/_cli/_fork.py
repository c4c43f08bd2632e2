"""`refold fork`: a run goes on from an earlier line, as another run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

import runner
from replay import State
from runner._cli import _options, _out, _words
from runner._cli._answer import when_free


@click.command()
@_options.run
@click.option("--at", type=click.IntRange(min=0), required=True, metavar="SEQ", help="The line it goes on from.")
@click.option("--run", "new", metavar="NEWID", help="The new run's id.", show_default="made as for a new run")
@_options.runs
@_options.by
def fork(run: str, at: int, new: str | None, runs: Path, who: str) -> None:
    """Go on from an earlier line of RUN in a new run.

    RUN is stopped for good unless it is done. What it did behind that line the new run knows: a call that would do it
    again is not run before a person has decided. The workspace must hold what it held at that line.
    """
    state = when_free(lambda: runner.fork(run, at=at, runs=runs, new=new, who=who))
    parent = runner.read(run, runs)
    _out.rows(list(_page(state, parent)))
    _out.err(f"Carry it on with: refold resume {state.run} --agent module:attr --runs {shlex.quote(str(runs))}")


def _page(state: State, parent: State) -> Iterator[_out.Row]:
    yield "run", state.run
    yield "forked from", f"{parent.run}, which is {_words.phase(parent)}"
    yield "phase", _words.phase(state)
    yield from (("open", f"{call} may have happened") for call in state.open)
    for effect in state.fence:
        came = f"came to {effect.text}" if effect.happened else "may have happened"
        yield "fenced", f"{effect.call} {effect.tool} {effect.arguments} {came}"
