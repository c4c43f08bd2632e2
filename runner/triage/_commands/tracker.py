"""`refold tracker`: fault injection for the demonstration's tracker."""

import asyncio
from pathlib import Path

import click
from msgspec.structs import replace

from runner import triage
from runner.commands import options, out
from runner.triage import _commands
from runner.triage._job import Job


@click.command()
@_commands.task
@options.runs
@_commands.world
@click.option("--ignore-keys/--no-ignore-keys", default=None, help="Make a new issue of every request.")
@click.option("--key-ttl", type=click.FloatRange(min=0), metavar="S", help="Remember a key for S seconds.")
@click.option("--delay", type=click.FloatRange(min=0), metavar="S", help="Reply S seconds after the commit.")
@click.option("--lookup-down/--no-lookup-down", default=None, help="Answer 503 when asked for an issue by its key.")
def tracker(
    task: str,
    runs: str,
    world: Path | None,
    *,
    ignore_keys: bool | None,
    key_ttl: float | None,
    delay: float | None,
    lookup_down: bool | None,
) -> None:
    """Configure fault injection for the demo's issue tracker.

    The faults are kept beside the tracker's file; what no option names stays as it was. The tracker is started if it
    is not running, and ends when nobody has used it for a while.
    """
    _commands.check_extra("tracker")
    place = Job.of(task, runs, world).world.path
    said = {"ignore_keys": ignore_keys, "key_ttl": key_ttl, "delay": delay, "lookup_down": lookup_down}
    faults = replace(triage.tracker_faults(place), **{name: value for name, value in said.items() if value is not None})
    triage.set_tracker_faults(place, faults)
    address = asyncio.run(triage.tracker(place))
    out.rows(
        [
            ("world", str(place)),
            ("address", address),
            ("keys", "ignored" if faults.ignore_keys else f"remembered for {faults.key_ttl:g} s"),
            ("delay", f"{faults.delay:g} s"),
            ("lookup", "down" if faults.lookup_down else "up"),
        ]
    )
