"""`refold preflight`: before a deploy, whether today's code can go on with every unfinished run."""

from __future__ import annotations

from pathlib import Path

import click

import runner
from replay import State
from runner._cli import _agents, _options, _out, _whose
from runner._cli._errors import Status, leave


@click.command()
@_whose.option
@_options.runs
@_options.json
def preflight(agent: str | None, runs: Path, *, as_json: bool) -> None:
    """Say whether today's code can go on with each unfinished run.

    What stands in the way: a tool that is gone, an effect or arguments that changed under an open call, a policy,
    events of a later version, a changed workspace, a damaged log. Exit status 1 if any run can't go on. With --agent
    that agent's runs are looked at; without it every run, and one whose agent only you can name counts as one that
    can't.
    """
    whose: runner.Agent | None = _agents.load(agent) if agent is not None else None

    def todays(state: State) -> runner.Agent | None:
        return _whose.triage(state, runs, "preflight")

    found = runner.preflight(runs, whose if whose is not None else todays)
    if as_json:
        _out.as_json([_facts(each) for each in found])
    elif found:
        _out.table(("RUN", "PHASE", "VERDICT", "WHAT"), [row for each in found for row in _rows(each)])
    else:
        _out.err(
            f"No unfinished runs in {runs}." if whose is None else f"No unfinished runs of {whose.name} in {runs}."
        )
    if not all(_able(each) for each in found):
        leave(Status.FAILED)


def _able(found: runner.Preflight) -> bool:
    """Whether the run can go on, as far as was looked: one that was not held against an agent may not."""
    return found.able and not any(hitch.kind == "not-checked" for hitch in found.hitches)


def _facts(found: runner.Preflight) -> dict[str, object]:
    return {
        "run": found.run,
        "agent": found.agent,
        "phase": found.phase,
        "seq": found.seq,
        "able": _able(found),
        "hitches": found.hitches,
    }


def _rows(found: runner.Preflight) -> list[tuple[str, str, str, str]]:
    """One row for the run, with what was found below each other."""
    verdict = "goes on" if _able(found) else "can't go on"
    ordered = sorted(found.hitches, key=lambda hitch: not hitch.blocks)
    said = [f"{hitch.kind}: {hitch.says}" for hitch in ordered] or [""]
    first = (found.run, found.phase, verdict, said[0])
    return [first, *(("", "", "", each) for each in said[1:])]
