"""`refold export` and `refold report`: a run as a file for people: a test, or one page for a browser.

The test fails where the current code first decides differently. What looks like a secret is masked in both before they
are written.

Such a file holds what an agent read: it is readable by its owner only, like the log, and never takes the place of what
the command did not make. A name that is a link, a pipe, a device, another user's file, or a file that does not look
like one of ours is refused; nothing is opened that could block. The new file is written beside it and takes its place
at once, so a link that appears meanwhile is replaced and not followed.
"""

import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import click

import runner
from eventlog import DISK
from runner._cli import load_agent, options
from runner._cli._io import out
from runner._cli._io.errors import Refused, Status

MADE = "Made by `refold export`"
_LOOKED_AT = 4_096


@click.command()
@options.run
@click.option(
    "--pytest",
    "test",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The test to write: test_NAME.py; the history is put beside it.",
)
@load_agent.option
@options.runs
@options.redact
def export(run: str, test: Path, source: load_agent.Source, runs: str, patterns: tuple[re.Pattern[str], ...]) -> None:
    """Make a test of RUN's history.

    The test walks the recorded replies and results through the current agent, offline, and fails at the first place
    where it decides otherwise. Secrets are masked.
    """
    if not re.fullmatch(r"test_\w+\.py", test.name):
        raise click.UsageError(f"pytest collects test_NAME.py, not {test.name}")
    history = test.with_suffix(".history.jsonl")
    _check_replaceable(test, _is_test)
    _check_replaceable(history, _is_history)
    agent = source.agent(runner.read_state(run, runs))
    data, found = runner.review.export(run, agent, runs=runs, patterns=(*runner.review.SECRET_PATTERNS, *patterns))
    test.parent.mkdir(parents=True, exist_ok=True)
    _write_private(history, data, _is_history)
    _write_private(test, _text(run, source, history.name).encode(), _is_test)
    out.out(f"{test} and {history.name} beside it: {found.decisions:,} decisions; run it with pytest {test}")
    if found.divergence is not None:
        seq, why = found.divergence.seq, found.divergence.why
        out.err(f"refold: the test fails as it is, because the current code diverges at line {seq}: {why}")


def _is_test(data: bytes) -> bool:
    return MADE.encode() in data


def _is_history(data: bytes) -> bool:
    """Whether a file begins as the histories do that this command writes."""
    return data.startswith(b'{"seq":') and b'"life":' in data[:100]


def _text(run: str, source: load_agent.Source, history: str) -> str:
    name = re.sub(r"\W", "_", run)
    module, _, path = source.spec.partition(":")
    made = isinstance(source.found, runner.Agent) or source.takes_state()
    agent = f"{module}.{path}{'' if made else '()'}"
    return f'''"""The history of run {run}: the current agent must make the same decisions.

{MADE}. No model is asked and no tool runs. A failure shows the first decision that
differs; if the new decision is meant, make this file again from a run of the current code.
"""

from pathlib import Path

import runner
import {module}

HERE = Path(__file__).parent


def test_the_current_agent_decides_as_in_{name}() -> None:
    """Walks the recorded replies and results; fails at the first divergence."""
    runner.review.retrace_export(HERE / "{history}", {agent}).check()
'''


PAGE_MADE = b'<meta name="generator" content="refold report">'
"""By this a page is known that an earlier report made, and a new one may replace."""


@click.command()
@options.reads
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    show_default="RUN.html",
    help="Where to write the page.",
)
@options.redact
def report(run: str, runs: str, *, output: Path | None, patterns: tuple[re.Pattern[str], ...], as_json: bool) -> None:
    """Write RUN as one HTML page that needs no network.

    Totals, findings, a timeline, every call with its arguments, result, key and sums, and the raw events. What looks
    like a secret is masked. On a damaged log: what holds, and up to where.
    """
    audited = runner.review.audit(run, runs)
    page = _render(audited, (*runner.review.SECRET_PATTERNS, *patterns))
    file = Path(f"{run}.html") if output is None else output
    _write_private(file, page, lambda data: PAGE_MADE in data)
    if as_json:
        out.as_json({"run": run, "file": str(file), "bytes": len(page), "seq": audited.story.seq})
    else:
        out.out(f"{file}  {len(page):,} bytes, lines 0 to {audited.story.seq}")
    if audited.problem is not None:
        raise audited.problem


def _render(audited: runner.review.Audited, patterns: tuple[runner.review.SecretPattern, ...]) -> bytes:
    try:
        from runner._cli._render import _page
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise Refused("the page is a template, and jinja2 is not installed", "pip install 'refold[report]'") from None
    return _page.render(audited, patterns).encode()


def _check_replaceable(file: Path, is_ours: Callable[[bytes], bool]) -> None:
    """Raise `Refused`, status 2, if `file` may not be replaced; `is_ours` is asked about its first bytes."""
    try:
        found = file.lstat()
    except FileNotFoundError:
        return
    why = ""
    if not stat.S_ISREG(found.st_mode):
        why = "is a link" if stat.S_ISLNK(found.st_mode) else "is not a file"
    elif found.st_uid != os.geteuid():
        why = "belongs to another user"
    elif found.st_size and not is_ours(_first_bytes(file)):
        why = "is there and was not made by this command"
    if why:
        raise Refused(f"{file} {why}", "Name another file.", Status.USAGE)


def _write_private(file: Path, data: bytes, is_ours: Callable[[bytes], bool]) -> None:
    """Write `data` to `file`. If that fails, what was there stays."""
    _check_replaceable(file, is_ours)
    beside = file.with_name(f".{file.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(DISK.open(beside, write=True, new=True), "wb") as stream:
            stream.write(data)
        beside.replace(file)
    except BaseException:  # whatever ends this leaves no half-written file
        beside.unlink(missing_ok=True)
        raise


def _first_bytes(file: Path) -> bytes:
    with os.fdopen(DISK.open(file), "rb") as stream:
        return stream.read(_LOOKED_AT)
