"""`refold retrace`: would today's code take the way that a run took? Nothing is asked, run or written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

import runner
from replay import Drift, Retraced
from runner._cli import _options, _out, _whose
from runner._cli._errors import Status, leave


@click.command()
@_options.run
@_whose.option
@_options.runs
@_options.json
def retrace(run: str, agent: str | None, runs: Path, *, as_json: bool) -> None:
    """Walk RUN's history through today's agent.

    The first place where it would decide otherwise is a divergence, shown with both sides: exit status 1. The same
    decision from other instructions, tools, messages or parameters is drift: it is listed, and the exit status is 0.
    """
    state = runner.read(run, runs)
    found = runner.retrace(run, _whose.of(state, agent, runs, "retrace").agent, runs=runs)
    if as_json:
        _out.as_json(found)
    else:
        _out.rows(list(page(found, state.agent)))
        if found.divergence is not None:
            _out.out()
            _out.out(f"- the history, + today's code\n{found.divergence.diff()}")
    if found.divergence is not None:
        leave(Status.FAILED)


def page(found: Retraced, agent: str) -> Iterator[_out.Row]:
    """The page for people, row by row."""
    yield "run", found.run
    yield "agent", agent
    split = found.divergence
    if split is None:
        yield "verdict", f"today's code decides the same, at all {found.decisions:,} decisions up to line {found.seq}"
    else:
        yield "verdict", f"today's code goes another way, after {found.decisions:,} decisions that are the same"
        yield "divergence", f"line {split.seq}, {split.at:%Y-%m-%d %H:%M:%S} UTC: {split.why}"
    for (tag, part), drifts in _by_part(found.drift).items():
        first = drifts[0]
        places = f"line {first.seq}" if len(drifts) == 1 else f"{len(drifts)} lines, first line {first.seq}"
        yield "drift", f"{part} ({tag}, {places}): {_short(first.was)} was, {_short(first.now)} now"
    if not found.drift:
        yield "drift", "none"


def _by_part(drift: tuple[Drift, ...]) -> dict[tuple[str, str], list[Drift]]:
    parts: dict[tuple[str, str], list[Drift]] = {}
    for each in drift:
        parts.setdefault((each.tag, each.part), []).append(each)
    return parts


def _short(value: str) -> str:
    return _out.line(value, 80) or "none"
