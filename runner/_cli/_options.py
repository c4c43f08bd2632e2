"""The options that several commands share, so that each means the same everywhere."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

import runner

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""The units of an age."""

Command = Callable[..., Any]

runs = click.option(
    "--runs",
    type=click.Path(path_type=Path),
    envvar="REFOLD_RUNS",
    default="runs",
    show_default="$REFOLD_RUNS, else ./runs",
    metavar="DIR",
    help="The directory of runs.",
)
json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a page for people.")
run = click.argument("run", metavar="RUN")
question = click.argument("question", metavar="QUESTION")


def account() -> str:
    """The name of the account this process runs as; it needs neither HOME nor any other variable."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's number without a name
        return f"uid {os.getuid()}"


by = click.option("--by", "who", default=account, show_default="your account", metavar="WHO", help="Who says so.")


def _finite(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    """A limit that is no number would never be reached."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("it is not a number")
    return value


def limits(command: Command) -> Command:
    """The three options that override an agent's limits."""
    for option in (
        click.option(
            "--max-dollars",
            type=click.FloatRange(min=0, max=1e9),
            callback=_finite,
            metavar="X",
            help="Stop when this much is spent, in dollars.",
        ),
        click.option("--max-turns", type=click.IntRange(min=0), metavar="N", help="Stop after this many turns."),
        click.option("--max-resumes", type=click.IntRange(min=0), metavar="N", help="Resume at most this often."),
    ):
        command = option(command)
    return command


def limited(
    given: runner.Limits, max_resumes: int | None, max_turns: int | None, max_dollars: float | None
) -> runner.Limits:
    """`given` with what the command line says instead."""
    said = {"resumes": max_resumes, "turns": max_turns, "dollars": max_dollars}
    return replace(given, **{name: value for name, value in said.items() if value is not None})


def age(text: str) -> timedelta:
    """A stretch of time as a person writes it: `90s`, `15m`, `2h`, `7d`, `3w`; a bare number is seconds.

    Raises click's usage error for anything else.
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw]?)", text, re.ASCII)
    if found is None:
        message = f"{text!r} is no stretch of time; write 90s, 15m, 2h or 7d"
        raise click.BadParameter(message)
    return timedelta(seconds=float(found[1]) * SECONDS[found[2]])
