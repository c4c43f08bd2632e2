"""`refold tracker`: how well the tracker of a world behaves, and where it listens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
from msgspec.structs import replace

from runner._cli import _options, _out, _triage


@click.command()
@_triage.task
@_options.runs
@_triage.world
@click.option("--ignore-keys/--no-ignore-keys", default=None, help="Make a new issue of every request.")
@click.option("--key-ttl", type=click.FloatRange(min=0), metavar="S", help="Remember a key for S seconds.")
@click.option("--delay", type=click.FloatRange(min=0), metavar="S", help="Reply S seconds after the commit.")
@click.option("--lookup-down/--no-lookup-down", default=None, help="Answer 503 when asked for an issue by its key.")
def tracker(
    task: str,
    runs: Path,
    world: Path | None,
    *,
    ignore_keys: bool | None,
    key_ttl: float | None,
    delay: float | None,
    lookup_down: bool | None,
) -> None:
    """Set and print the manners of a world's tracker.

    The world keeps them; what no option names stays as it was. The tracker is started if it is not running, and ends
    when nobody has needed it for a while.
    """
    app = _triage.needed("tracker")
    place = app.Job.of(task, runs, world).world.path
    said = {"ignore_keys": ignore_keys, "key_ttl": key_ttl, "delay": delay, "lookup_down": lookup_down}
    manners = replace(app.manners(place), **{name: value for name, value in said.items() if value is not None})
    app.set_manners(place, manners)
    address = asyncio.run(app.tracker(place))
    _out.rows(
        [
            ("world", str(place)),
            ("address", address),
            ("keys", "ignored" if manners.ignore_keys else f"remembered for {manners.key_ttl:g} s"),
            ("delay", f"{manners.delay:g} s"),
            ("lookup", "down" if manners.lookup_down else "up"),
        ]
    )
