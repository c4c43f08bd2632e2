"""`refold export`: a run becomes a test that fails where today's code first goes another way."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import click

import runner
from runner._cli import _options, _out, _whose
from runner._cli._errors import Refused, Status

MADE = "Made by `refold export`"


def _pattern(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(value) for value in values)
    except re.error as error:
        message = f"it is no regular expression: {error}"
        raise click.BadParameter(message) from error


redact = click.option(
    "--redact",
    "patterns",
    multiple=True,
    callback=_pattern,
    metavar="PATTERN",
    help="A regular expression whose matches are masked too; may be repeated. What looks like a secret always is.",
)


@click.command()
@_options.run
@click.option(
    "--pytest",
    "test",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The test to write: test_NAME.py; the history is put beside it.",
)
@_whose.option
@_options.runs
@redact
def export(run: str, test: Path, agent: str | None, runs: Path, patterns: tuple[re.Pattern[str], ...]) -> None:
    """Make a test of RUN's history.

    The test walks the recorded replies and results through today's agent, offline, and fails at the first place where
    it decides otherwise. Secrets are masked.
    """
    if not re.fullmatch(r"test_\w+\.py", test.name):
        raise click.UsageError(f"pytest collects test_NAME.py, not {test.name}")
    history = test.with_suffix(".history.jsonl")
    if test.exists() and MADE not in test.read_text(encoding="utf-8", errors="replace"):
        raise Refused(f"{test} is there and was not made by this command", "Name another file.", Status.USAGE)
    state = runner.read(run, runs)
    todays = _whose.of(state, agent, runs, "export")
    data, found = runner.export(run, todays.agent, runs=runs, patterns=(*runner.SECRETS, *patterns))
    test.parent.mkdir(parents=True, exist_ok=True)
    history.write_bytes(data)
    test.write_text(_text(run, todays, history.name), encoding="utf-8")
    _out.out(f"{test} and {history.name} beside it: {found.decisions:,} decisions; run it with pytest {test}")
    if found.divergence is not None:
        seq, why = found.divergence.seq, found.divergence.why
        _out.err(f"refold: the test fails as it is, because today's code diverges at line {seq}: {why}")


def _text(run: str, todays: _whose.Agent, history: str) -> str:
    """The test's source."""
    name = re.sub(r"\W", "_", run)
    assert not keyword.iskeyword(name)  # a run's id with `test_` before it is none
    imports = "\n".join(("import runner", *todays.imports))
    return f'''"""The way that run {run} took: today's agent must decide the same wherever this history decides.

{MADE}. No model is asked and no tool runs. A failure shows the first place where today's agent goes
another way; if that way is meant, make this file anew from a run that goes it.
"""

from pathlib import Path

{imports}

HERE = Path(__file__).parent


def test_todays_agent_goes_the_way_of_{name}() -> None:
    """Walks the recorded replies and results; fails at the first divergence."""
    runner.retrace_export(HERE / "{history}", {todays.expression}).check()
'''
