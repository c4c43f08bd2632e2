"""The options that several commands share, so that each means the same everywhere."""

import functools
import json as json_module
import math
import os
import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

import eventlog
import runner

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
"""The units of an age."""

Command = Callable[..., Any]
Limited = Callable[[runner.Limits], runner.Limits]

runs = click.option(
    "--runs",
    envvar="REFOLD_RUNS",
    default="runs",
    show_default="$REFOLD_RUNS, else ./runs",
    metavar="PLACE",
    help="Where the runs are: a directory, or postgresql://USER@HOST/DATABASE.",
)


def existing(runs: str) -> str:
    """`runs`, unless it is a directory that is not there: a typing error, not a place without runs."""
    if "://" not in runs and not Path(runs).exists():
        raise click.UsageError(f"there is no directory {runs}")
    return runs


def shown(runs: str | Path | eventlog.Store) -> str:
    """`runs` as it is printed: without a password, and so that a shell reads it."""
    return shlex.quote(str(eventlog.store(runs)))


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


def says(command: Command) -> Command:
    """What everything that a person says to a run takes."""
    return run(runs(by(command)))


def answers(command: Command) -> Command:
    """What every answer to a question of a run takes."""
    return run(question(runs(by(command))))


def reads(command: Command) -> Command:
    """What every command that reads one run takes."""
    return run(runs(json(command)))


def json_object(text: str) -> dict[str, Any]:
    """A JSON object as it was typed. Raises click's usage error."""
    try:
        found = json_module.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.BadParameter("it is no JSON object")
    return found


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"{error.pattern!r} is not a regular expression: {error.msg}") from None


redact = click.option(
    "--redact",
    "patterns",
    multiple=True,
    type=_pattern,
    metavar="PATTERN",
    help="A regular expression whose matches are masked too; may be repeated. What looks like a secret always is.",
)


def pairs(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Labels as they were typed."""
    for pair in given:
        if "=" not in pair:
            raise click.BadParameter(f"{pair!r} is not a name, =, and a value")
    return dict(pair.split("=", 1) for pair in given)


labels = functools.partial(click.option, "--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE")
workspace = functools.partial(
    click.option, "--workspace", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR"
)


def _finite(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    """A limit that is not a number would never be reached."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("it is not a number")
    return value


TIMES = "2026-01-31, '2026-01-31 18:00' or 2026-01-31T18:00:00Z"
"""How a time may be written."""


def time(text: str) -> datetime:
    """A time as a person writes it; one without a zone is of this machine's. Raises click's usage error."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is not a time; write {TIMES}") from None


def limits(command: Command) -> Command:
    """The options that override an agent's limits; the command gets `limited`, which applies them."""

    @click.option(
        "--max-resumes", "resumes", type=click.IntRange(min=0), metavar="N", help="Resume at most this often."
    )
    @click.option("--until", type=time, metavar="TIME", help=f"Begin nothing after this time: {TIMES}.")
    @click.option("--max-turns", "turns", type=click.IntRange(min=0), metavar="N", help="Stop after this many turns.")
    @click.option(
        "--max-dollars",
        "dollars",
        type=click.FloatRange(min=0, max=1e9),
        callback=_finite,
        metavar="X",
        help="Stop when so many dollars are spent.",
    )
    @functools.wraps(command)
    def narrowed(**given: Any) -> Any:
        said: dict[str, Any] = {name: given.pop(name) for name in ("resumes", "until", "turns", "dollars")}
        said = {name: value for name, value in said.items() if value is not None}
        return command(limited=lambda own: replace(own, **said), **given)

    return narrowed


def age(text: str) -> timedelta:
    """A stretch of time as a person writes it: `90s`, `15m`, `2h`, `7d`, `3w`; a bare number is seconds.

    Raises click's usage error for anything else.
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw]?)", text, re.ASCII)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration; write 90s, 15m, 2h or 7d")
    return timedelta(seconds=float(found[1]) * SECONDS[found[2]])


aged = functools.partial(click.option, type=age, metavar="AGE")
