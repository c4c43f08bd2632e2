"""`refold copy`: a run as a directory elsewhere, to be read and kept."""

import click

import eventlog
from runner._cli import options
from runner._cli._io import out


@click.command()
@options.run
@click.argument("directory", metavar="DIR")
@options.runs
def copy(run: str, directory: str, runs: str) -> None:
    """Copy RUN into DIR, a directory of runs.

    The copy is verified, shown and answers as the run does. It is not carried on, so nothing is done twice: whoever has
    lost the run itself may remove the file `copy` from it.
    """
    eventlog.store(runs).copy(run, directory)
    verdict = eventlog.Directory(directory).verify(run)
    out.rows([("copy", f"{directory}/{run}"), ("lines", str(verdict.seq + 1)), ("sum", verdict.sum)])
