"""`refold export` and `refold report`: a run as a file for people: a test, or one page for a browser.

The test fails where the current code first decides differently. The page holds what the agent read, so it is readable
by its owner only, like the log. What looks like a secret is masked in both before they are written.
"""

import keyword
import re
from pathlib import Path

import click

import runner
from runner._cli import load_agent, options
from runner._cli._io import files, out
from runner._cli._io.errors import Refused, Status, leave, say

MADE = "Made by `refold export`"


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
    files.check_replaceable(test, _is_test)
    files.check_replaceable(history, _is_history)
    agent = source.agent(runner.read_state(run, runs))
    data, found = runner.review.export(run, agent, runs=runs, patterns=(*runner.review.SECRET_PATTERNS, *patterns))
    test.parent.mkdir(parents=True, exist_ok=True)
    files.write_private(history, data, _is_history)
    files.write_private(test, _text(run, source, history.name).encode(), _is_test)
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
    assert not keyword.iskeyword(name)  # a run's id with `test_` before it is none
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
    files.write_private(file, page, lambda data: PAGE_MADE in data)
    if as_json:
        out.as_json({"run": run, "file": str(file), "bytes": len(page), "seq": audited.story.seq})
    else:
        out.out(f"{file}  {len(page):,} bytes, lines 0 to {audited.story.seq}")
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
