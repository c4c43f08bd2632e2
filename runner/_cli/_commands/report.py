"""`refold report`: a run as one page for a browser, which can be sent on.

The page holds what the agent read, so it is readable by its owner only, like the log, and what looks like a secret is
masked before it is written.
"""

import re
from pathlib import Path

import click

import runner
from runner._cli import options
from runner._cli._io import files
from runner._cli._io import out as _out
from runner._cli._io.errors import Refused, Status, leave, say

MADE = b'<meta name="generator" content="refold report">'
"""By this a page is known that an earlier report made, and a new one may replace."""


@click.command()
@options.run
@options.runs
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    show_default="RUN.html",
    help="Where to write the page.",
)
@options.redact
@options.json
def report(run: str, runs: str, *, output: Path | None, patterns: tuple[re.Pattern[str], ...], as_json: bool) -> None:
    """Write RUN as one HTML page that needs no network.

    Totals, findings, a timeline, every call with its arguments, result, key and sums, and the raw events. What looks
    like a secret is masked. On a damaged log: what holds, and up to where.
    """
    audited = runner.review.audit(run, runs)
    page = _render(audited, (*runner.review.SECRET_PATTERNS, *patterns))
    file = Path(f"{run}.html") if output is None else output
    files.write_private(file, page, lambda data: MADE in data)
    if as_json:
        _out.as_json({"run": run, "file": str(file), "bytes": len(page), "seq": audited.story.seq})
    else:
        _out.out(f"{file}  {len(page):,} bytes, lines 0 to {audited.story.seq}")
    if audited.problem is not None:
        say(audited.problem)
        leave(Status.DAMAGED)


def _render(audited: runner.review.Audited, patterns: tuple[runner.review.SecretPattern, ...]) -> bytes:
    try:
        from runner._cli._render import _page
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise Refused("the page is a template, and jinja2 is not installed", "pip install 'refold[report]'") from None
    return _page.render(audited, patterns).encode()
