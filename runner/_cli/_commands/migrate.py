"""`refold migrate`: the tables that a database needs for runs."""

import click

import eventlog
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused


@click.command()
@options.runs
def migrate(runs: str) -> None:
    """Make or bring up the tables of a database.

    Once, and after an upgrade. They only go forward.
    """
    if "://" not in runs:
        why = f"{runs} is a directory"
        raise Refused(why, "Only a database needs this: --runs postgresql://USER@HOST/DATABASE.")
    store = eventlog.store(runs)
    from eventlog.postgres import migrate as bring_up

    before, after = bring_up(runs)
    out.rows(
        [("database", str(store)), ("schema", f"{after}" if before == after else f"{before or 'none'} to {after}")]
    )
