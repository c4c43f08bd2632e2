"""`refold report`: a run as one page for a browser, which can be sent on.

The page holds what the agent read, so it is readable by its owner alone, like the log, and what looks like a secret is
masked before it is written.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import click

import runner
from runner._cli import _options, _out
from runner._cli._errors import Refused, Status, leave, say


def _patterns(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Regular expressions as they were typed."""
    try:
        return tuple(re.compile(pattern) for pattern in given)
    except re.error as error:
        message = f"{error.pattern!r} is no regular expression: {error.msg}"
        raise click.BadParameter(message) from None


@click.command()
@_options.run
@_options.runs
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    show_default="RUN.html",
    help="Where to write the page.",
)
@click.option(
    "--redact",
    multiple=True,
    callback=_patterns,
    metavar="PATTERN",
    help="Mask what matches this regular expression, too; may be repeated.",
)
@_options.json
def report(run: str, runs: Path, *, output: Path | None, redact: tuple[re.Pattern[str], ...], as_json: bool) -> None:
    """Write RUN as one HTML page that needs no network.

    Totals, findings, a timeline, every call with its arguments, result, key and sums, and the raw events. What looks
    like a secret is masked. On a damaged log: what holds, and up to where.
    """
    audited = runner.audit(run, runs)
    page = _render(audited, (*runner.SECRETS, *redact))
    file = Path(f"{run}.html") if output is None else output
    _write(file, page)
    if as_json:
        _out.as_json({"run": run, "file": str(file), "bytes": len(page), "seq": audited.story.seq})
    else:
        _out.out(f"{file}  {len(page):,} bytes, lines 0 to {audited.story.seq}")
    if audited.problem is not None:
        say(audited.problem)
        leave(Status.DAMAGED)


def _render(audited: runner.Audited, patterns: tuple[re.Pattern[str], ...]) -> bytes:
    try:
        from runner._cli import _page
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise Refused("the page is a template, and jinja2 is not installed", "pip install 'refold[report]'") from None
    return _page.render(audited, patterns).encode()


def _write(file: Path, page: bytes) -> None:
    """Write the page for its owner alone; a file that is there keeps its mode, and a pipe is one."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.ftruncate(fd, 0)
        out.write(page)
