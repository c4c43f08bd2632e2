"""`refold guarantees`: what happens to a call when the process dies in it, for each tool, and a check for CI."""

import click

import runner
from runner._cli import load_agent, options
from runner._cli._io import out
from runner._cli._io.errors import Status, leave
from runner._cli._render.as_json import fields


@click.command()
@load_agent.option
@options.runs
@click.option(
    "--fail-on",
    type=click.Choice(["may-ask", "may-repeat"]),
    multiple=True,
    help="End with status 1 if this is so of any tool; may be repeated.",
)
@options.json
def guarantees(source: load_agent.Source, runs: str, *, fail_on: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001 (every command takes --runs)
    """Say what a death in each tool of an agent means.

    One line for each tool, in the words of the rules that settle its calls. No run is read and no tool is run.
    """
    found = runner.review.guarantees(source.agent())
    if as_json:
        out.as_json([{**_facts(each), "line": str(each)} for each in found])
    else:
        out.table(("tool", "effect", "if the process dies in a call"), [(e.tool, e.effect, str(e)) for e in found])
    failed = [(what, each.tool) for what in fail_on for each in found if _facts(each)[what.replace("-", "_")]]
    for what, tool in failed:
        out.err(f"refold: {tool} {what.replace('-', ' ')}")
    if failed:
        leave(Status.FAILED)


def _facts(each: runner.review.Guarantee) -> dict[str, object]:
    return fields(each, "tool effect words may_ask may_repeat approval")
