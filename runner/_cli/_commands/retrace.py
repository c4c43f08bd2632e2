"""`refold retrace`: whether the current code makes the same decisions. Nothing is asked, run or written."""

import re
from collections.abc import Iterator

import click

import runner
from replay import Drift, Retraced
from runner._cli import load_agent, options
from runner._cli._io import out
from runner._cli._io.errors import Status, leave
from runner._cli._render.escape import one_line

_DIGEST = re.compile("[0-9a-f]{16,128}")


@click.command()
@options.run
@load_agent.option
@options.runs
@options.json
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
        out.rows(list(page(found, state.agent)))
        if found.divergence is not None:
            out.out()
            out.out(f"- the history, + the current code\n{found.divergence.diff()}")
    if found.divergence is not None:
        leave(Status.FAILED)


def page(found: Retraced, agent: str) -> Iterator[out.Row]:
    """The page for people, row by row."""
    yield "run", found.run
    yield "agent", agent
    split = found.divergence
    if split is None:
        yield (
            "verdict",
            f"the current code decides the same, at all {found.decisions:,} decisions up to line {found.seq}",
        )
    else:
        yield "verdict", f"the current code decides differently, after {found.decisions:,} decisions that are the same"
        yield "divergence", f"line {split.seq}, {split.at:%Y-%m-%d %H:%M:%S} UTC: {split.why}"
    for (_, part), drifts in _by_part(found.drift).items():
        first = drifts[0]
        places = f"line {first.seq}" if len(drifts) == 1 else f"{len(drifts)} lines, first line {first.seq}"
        yield "drift", f"{part} of {first.title} ({places}): {_change(first)}"
    if not found.drift:
        yield "drift", "none"


def _by_part(drift: tuple[Drift, ...]) -> dict[tuple[str, str], list[Drift]]:
    parts: dict[tuple[str, str], list[Drift]] = {}
    for each in drift:
        parts.setdefault((each.tag, each.part), []).append(each)
    return parts


def _change(drift: Drift) -> str:
    """What changed. A digest says nothing to a person but that it did."""
    if all(_DIGEST.fullmatch(value) for value in (drift.was, drift.now)):
        return "changed"
    return f"{one_line(drift.was, 80) or 'none'} was, {one_line(drift.now, 80) or 'none'} now"
