"""`refold compact`: a snapshot of a run's state by hand; audit and retrace still see every event."""

import click

import runner
from runner._cli import options
from runner._cli._io import out


@click.command()
@options.run
@options.runs
def compact(run: str, runs: str) -> None:
    """Keep a snapshot of RUN's state.

    The next resume starts from it. Every event stays.
    """
    snapshot = runner.compact(run, runs=runs)
    out.rows([("run", run), ("line", str(snapshot.seq)), ("snapshot", f"{snapshot.size:,} bytes")])
