"""`refold guarantees`: what happens to a call when the process dies in it, for each tool, and a check for CI."""

from __future__ import annotations

from pathlib import Path

import click

import runner
from runner._cli import _agents, _options, _out
from runner._cli._errors import Status, leave


@click.command()
@_agents.option
@_options.runs
@click.option(
    "--fail-on",
    type=click.Choice(["may-ask", "may-repeat"]),
    multiple=True,
    help="End with status 1 if this is so of any tool; may be repeated.",
)
@_options.json
def guarantees(agent: str, runs: Path, *, fail_on: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001 (every command takes --runs)
    """Say what a death in each tool of an agent means.

    One line for each tool, in the words of the ladder that settles its calls. No run is read and no tool is run.
    """
    found = runner.guarantees(_agents.load(agent))
    if as_json:
        _out.as_json([{**_facts(each), "line": str(each)} for each in found])
    else:
        _out.table(("tool", "effect", "if the process dies in a call"), [(e.tool, e.effect, str(e)) for e in found])
    failed = [(what, each.tool) for what in fail_on for each in found if _facts(each)[what.replace("-", "_")]]
    for what, tool in failed:
        _out.err(f"refold: {tool} {what.replace('-', ' ')}")
    if failed:
        leave(Status.FAILED)


def _facts(each: runner.Guarantee) -> dict[str, object]:
    return {
        "tool": each.tool,
        "effect": each.effect,
        "words": each.words,
        "may_ask": each.may_ask,
        "may_repeat": each.may_repeat,
        "approval": each.approval,
    }
