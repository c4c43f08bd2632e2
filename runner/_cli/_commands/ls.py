"""`refold ls` and `refold inbox`: every run, newest first, and what they ask of a person, oldest first.

A damaged run is listed among the others with its problem. A question comes with the commands that answer it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

import runner
from replay import Question, State
from runner._cli import options
from runner._cli._io import out
from runner._cli._render import audit_text, event_text, question_text
from runner._cli._render.as_json import fields
from runner._cli._render.as_json import question as question_facts
from runner._cli._render.escape import one_line

PHASES = ("new", "model", "tools", "paused", "done")
ANY = "any reason"

FACTS = "task agent labels phase turns stopped wake resumes dollars in_doubt open_questions at parent_call"
"""What is printed of a status, for programs."""


@click.command()
@options.runs
@click.option("--phase", type=click.Choice(PHASES), multiple=True, help="Only runs in this phase; may be repeated.")
@click.option("--task", metavar="TEXT", help="Only runs whose task holds TEXT.")
@click.option(
    "--stopped", metavar="[REASON]", is_flag=False, flag_value=ANY, help="Only stopped runs, or those with this reason."
)
@options.labels(help="Only runs with this label.")
@options.aged("--older-than", help="Only runs last saved longer ago: 90s, 15m, 2h, 7d.")
@options.aged("--newer-than", help="Only runs last saved more recently.")
@options.json
def ls(
    runs: str,
    *,
    phase: tuple[str, ...],
    task: str | None,
    stopped: str | None,
    labels: dict[str, str],
    older_than: timedelta | None,
    newer_than: timedelta | None,
    as_json: bool,
) -> None:
    """List the runs, newest first.

    A run that can't be read is listed among the others, with its problem, unless a filter asks for what it can't tell.
    """
    now = datetime.now(UTC)
    is_filtered = bool(phase or labels) or any(one is not None for one in (task, stopped, older_than, newer_than))

    def wanted(status: runner.RunStatus) -> bool:
        age = now - (status.at or now)
        return (
            (not phase or status.phase in phase)
            and (task is None or task in status.task)
            and (stopped is None or (status.stopped is not None and stopped in (ANY, status.stopped)))
            and labels.items() <= status.labels.items()
            and (older_than is None or age > older_than)
            and (newer_than is None or age <= newer_than)
        )

    found = runner.list_runs(runs)
    if is_filtered:
        found = [one for one in found if one.status is not None and wanted(one.status)]
    if as_json:
        out.as_json([_facts(one) for one in found])
    elif found:
        out.table(("RUN", "PHASE", "TURNS", "SPENT", "SAVED", "TASK"), [_cells(one, now) for one in found])
    else:
        out.err("No such runs." if is_filtered else f"No runs in {options.shown(runs)}.")


def _facts(info: runner.RunInfo) -> dict[str, object]:
    """A run for programs; of one that can't be read only its name and the problem are known."""
    known = dict.fromkeys(FACTS.split()) if info.status is None else fields(info.status, FACTS)
    known["waiting"] = known.pop("open_questions")
    return {"run": info.run, **known, "live": info.live, "problem": info.problem and str(info.problem)}


def _cells(info: runner.RunInfo, now: datetime) -> tuple[str, ...]:
    status = info.status
    if status is None:
        return info.run, "unreadable", "", "", "", str(info.problem)
    return (
        info.run,
        ", ".join([*_phase(status, now), *(["live"] if info.live else [])]),
        str(status.turns),
        event_text.money(status.dollars),
        audit_text.ago(status.at) if status.at is not None else "",
        one_line(f"({status.parent_call.run}) {status.task}" if status.parent_call else status.task, 60),
    )


def _phase(status: runner.RunStatus, now: datetime) -> Iterator[str]:
    """The phase, and what the run is doing or waiting for in it."""
    yield status.phase
    if status.stopped:
        yield f"stopped ({status.stopped})"
    elif status.open_questions:
        first, *more = status.open_questions
        yield f"asks {first}" + (f" and {len(more)} more" if more else "")
    if status.wake is not None and status.wake > now and not status.open_questions:
        yield f"waits {audit_text.length(status.wake - now)}"


@click.command()
@options.runs
@options.json
def inbox(runs: str, *, as_json: bool) -> None:
    """List what all runs ask, oldest first.

    With the exact arguments, and the commands that answer. Runs that are over ask nothing.
    """
    found = question_text.of_all(
        runner.list_unfinished(runs),
        lambda info: runner.read_state(info.run, runs),
        lambda run, error: out.err(f"{run} can't be read: {error}"),
    )
    if as_json:
        out.as_json([_question_facts(state, question, runs) for state, question in found])
        return
    for state, question in found:
        out.out(f"{state.run} waits for a person since {audit_text.moment(question.at)}: {one_line(state.task, 60)}")
        for line in (*question_text.asked(question), *question_text.commands(state, question, runs)):
            out.line(f"    {line}")
    if not found:
        out.err(f"No run in {options.shown(runs)} asks anything.")


def _question_facts(state: State, question: Question, runs: str) -> dict[str, object]:
    commands = question_text.commands(state, question, runs)
    return {"run": state.run, "agent": state.agent, **question_facts(question), "commands": commands}
