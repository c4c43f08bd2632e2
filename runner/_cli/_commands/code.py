"""`refold retrace`, `preflight` and `guarantees`: what the current code makes of runs, of one, of all, or of none.

Nothing is asked, run or written.
"""

import re
from collections.abc import Iterator, Sequence

import click

import eventlog
import runner
from replay import Drift, Retraced
from runner._cli import load_agent, options
from runner._cli._io import out
from runner._cli._io.errors import Status, leave
from runner._cli._render.as_json import fields
from runner._cli._render.escape import one_line

_LEASE = """\
A process that is cut off from the database loses its runs when their lease
ends, after {lease:g} s at most, and another carries them on. From then on it
begins nothing that goes through runner.web or asks call.holding() first; what
asks nothing ends by its tool's timeout, and no lookup that finds nothing is
believed before that. A key closes every gap."""
_DIGEST = re.compile("([0-9a-f]{16,128})?")


@click.command()
@options.reads
@load_agent.option
def retrace(run: str, source: load_agent.Source, runs: str, *, as_json: bool) -> None:
    """Walk RUN's history through the current code.

    The first place where it would decide otherwise is a divergence, shown with both sides: exit status 1. The same
    decision from other instructions, tools, messages or parameters is drift: it is listed, and the exit status is 0.
    """
    state = runner.read_state(run, runs)
    found = runner.review.retrace(run, source.agent(state), runs=runs)
    if as_json:
        out.as_json(found)
    else:
        out.rows(page(found, state.agent))
        if found.divergence is not None:
            out.out()
            out.out(f"- the history, + the current code\n{found.divergence.diff()}")
    if found.divergence is not None:
        leave(Status.FAILED)


def page(found: Retraced, agent: str) -> Iterator[out.Row]:
    yield "run", found.run
    yield "agent", agent
    split = found.divergence
    if split is None:
        where = f"at all {found.decisions:,} decisions up to line {found.seq}"
        yield "verdict", f"the current code decides the same, {where}"
    else:
        same = f"{found.decisions:,} {'decision that is' if found.decisions == 1 else 'decisions that are'} the same"
        yield "verdict", f"the current code decides differently, after {same}"
        yield "divergence", f"line {split.seq}, {split.at:%Y-%m-%d %H:%M:%S} UTC: {split.why}"
    parts: dict[tuple[str, str], list[Drift]] = {}
    for drift in found.drift:
        parts.setdefault((drift.tag, drift.part), []).append(drift)
    for (_, part), drifts in parts.items():
        first = drifts[0]
        places = f"line {first.seq}" if len(drifts) == 1 else f"{len(drifts)} lines, first line {first.seq}"
        yield "drift", f"{part} of {first.title} ({places}): {_change(first)}"
    if not found.drift:
        yield "drift", "none"


def _change(drift: Drift) -> str:
    """What changed. A digest says nothing to a person but that it did."""
    if drift.part.startswith("tool "):
        return one_line(drift.now, 160)
    if all(_DIGEST.fullmatch(value) for value in (drift.was, drift.now)):
        return "changed"
    was, now = (one_line(value, 80) for value in (drift.was, drift.now))
    return f"{was or 'none'} was, {now or 'none'} now"


@click.command()
@load_agent.several
@options.runs
@options.json
def preflight(sources: Sequence[load_agent.Source], runs: str, *, as_json: bool) -> None:
    """Say whether the code can carry on unfinished runs.

    Looks at every unfinished run. One needs a look if it has no agent of its name, a tool that is gone, an effect, an
    approval, a lookup or arguments that changed under a call, a limit that is reached, events of a later version, a
    changed workspace, a damaged log. Exit status 1 if any does.
    """
    agents = [source.agent_of if source.takes_state() else source.agent() for source in sources]
    found = runner.review.preflight(options.existing(runs), agents)
    if as_json:
        out.as_json([fields(each, "run agent phase seq able issues") for each in found])
    elif found:
        out.table(("RUN", "PHASE", "VERDICT", "WHAT"), [row for each in found for row in _rows(each)])
    else:
        out.err(f"No unfinished runs in {options.shown(runs)}: nothing was checked.")
    if not all(each.able for each in found):
        leave(Status.FAILED)


def _rows(found: runner.review.Preflight) -> list[tuple[str, str, str, str]]:
    verdict = "goes on" if found.able else "needs a look"
    ordered = sorted(found.issues, key=lambda issue: not issue.blocks)
    said = [f"{issue.kind}: {issue.says}" for issue in ordered] or [""]
    first = (found.run, found.phase, verdict, said[0])
    return [first, *(("", "", "", each) for each in said[1:])]


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
def guarantees(source: load_agent.Source, runs: str, *, fail_on: tuple[str, ...], as_json: bool) -> None:
    """Say what a crash in each tool of an agent leads to.

    One row for each tool, in the words of the rules that settle its calls, for runs in such a place: a database gives
    leases. No run is read and no tool is run.
    """
    lease = eventlog.store(runs).lease
    found = runner.review.guarantees(source.agent(), lease=lease)
    if as_json:
        out.as_json([{**_facts(each), "line": str(each)} for each in found])
    else:
        head = ("TOOL", "EFFECT", "AFTER A CRASH IN A CALL")
        out.table(head, [(each.tool, each.effect, str(each)) for each in found])
        if lease is not None:
            out.out(_LEASE.format(lease=lease))
    failed = [(what, each.tool) for what in fail_on for each in found if _facts(each)[what.replace("-", "_")]]
    for what, tool in failed:
        out.err(f"refold: {tool} {what.replace('-', ' ')}")
    if failed:
        leave(Status.FAILED)


def _facts(each: runner.review.Guarantee) -> dict[str, object]:
    return fields(each, "tool effect words may_ask may_repeat approval" + " acts_on" * (each.acts_on is not None))
