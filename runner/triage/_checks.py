"""The catalogue of checks, by task, and how they are held.

A check is a name, where it looks, and a function that returns why it fails. It never raises: what it trips over is its
reason to fail. A check that could crash would end the list exactly when it has something to say.

Some checks are held once for each crash group that was to be fixed; where a task has several, the group's number stands
before the check's name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from runner.triage import _checks_batch as batch
from runner.triage import _checks_log as log
from runner.triage import _checks_world as world
from runner.triage._evidence import Evidence
from runner.triage._task import Task
from runner.triage._world import World


class Check(NamedTuple):
    """One check. `looks` at the world alone, or at the log too; `each`: held for each crash group to be fixed.

    `why` takes the evidence, and the group if it is held for each.
    """

    name: str
    looks: Literal["world", "log"]
    why: Callable[..., str]
    each: bool = False

    @property
    def sentence(self) -> str:
        """What holds when it is ok."""
        return (self.why.__doc__ or "").strip()


class Outcome(NamedTuple):
    """What a check found; `why` is empty when it is ok."""

    name: str
    sentence: str
    ok: bool
    why: str

    def __str__(self) -> str:
        return f"ok      {self.name}  {self.sentence}" if self.ok else f"FAILED  {self.name}  {self.why}"


CATALOGUE: dict[str, tuple[Check, ...]] = {
    "m1-done-after-delete": (
        Check("one-issue", "world", world.one_issue),
        Check("right-cause", "world", world.right_cause),
        Check("names-crash", "world", world.names_crash, each=True),
        Check("patched-once", "world", world.patched_once, each=True),
        Check("only-intended-files", "world", world.only_intended),
        Check("suite-green", "world", world.suite_green),
        Check("test-present", "world", world.test_present, each=True),
        Check("test-bites", "world", world.test_bites, each=True),
        Check("crash-gone", "world", world.crash_gone, each=True),
        Check("no-leftovers", "world", world.no_leftovers),
        Check("same-key", "log", log.same_key),
        Check("same-spend", "log", log.same_spend),
        Check("lost-asks-accounted", "log", log.lost_accounted),
        Check("settled", "log", log.settled),
        Check("chain-verified", "log", log.chain_verified),
        Check("answer-names-issue", "log", log.answer_names_issue),
    ),
    "batch": (
        Check("names-crash", "world", world.names_crash, each=True),
        Check("patched-once", "world", world.patched_once, each=True),
        Check("test-present", "world", world.test_present, each=True),
        Check("test-bites", "world", world.test_bites, each=True),
        Check("crash-gone", "world", world.crash_gone, each=True),
        Check("fix-noted", "world", batch.fix_noted, each=True),
        Check("one-issue", "world", world.one_issue),
        Check("right-cause", "world", world.right_cause),
        Check("same-cause", "world", batch.same_cause),
        Check("comments-once", "world", batch.comments_once),
        Check("unseen-left-alone", "world", batch.unseen_left_alone),
        Check("only-intended-files", "world", world.only_intended),
        Check("suite-green", "world", world.suite_green),
        Check("no-leftovers", "world", world.no_leftovers),
        Check("same-key", "log", log.same_key),
        Check("comments-same-key", "log", batch.comments_same_key),
        Check("second-filing-refused", "log", batch.second_filing_refused),
        Check("corrected", "log", batch.corrected),
        Check("summarised", "log", batch.summarised),
        Check("same-spend", "log", log.same_spend),
        Check("lost-asks-accounted", "log", log.lost_accounted),
        Check("settled", "log", log.settled),
        Check("chain-verified", "log", log.chain_verified),
        Check("answer-names-issue", "log", log.answer_names_issue),
    ),
    "sweep": (
        Check("one-issue", "world", world.one_issue),
        Check("right-cause", "world", world.right_cause),
        Check("names-crash", "world", world.names_crash, each=True),
        Check("fix-noted", "world", batch.fix_noted, each=True),
        Check("comments-once", "world", batch.comments_once),
        Check("patched-once", "world", world.patched_once, each=True),
        Check("only-intended-files", "world", world.only_intended),
        Check("no-leftovers", "world", world.no_leftovers),
        Check("same-key", "log", log.same_key),
        Check("comments-same-key", "log", batch.comments_same_key),
        Check("same-spend", "log", log.same_spend),
        Check("lost-asks-accounted", "log", log.lost_accounted),
        Check("settled", "log", log.settled),
        Check("chain-verified", "log", log.chain_verified),
        Check("answer-names-issue", "log", log.answer_names_issue),
    ),
}
"""The checks of every task, in the order they are printed."""


def check(task: Task, in_world: World, runs: Path, run: str, only: Collection[str] = ()) -> list[Outcome]:
    """Hold the task's checks, all or those named in `only`, against the world and the run's log. Never raises."""
    evidence = Evidence(task, in_world, runs, run)
    chosen = [one for one in CATALOGUE[task.name] if not only or one.name in only]
    return [outcome for one in chosen for outcome in _held(one, evidence)]


def _held(one: Check, evidence: Evidence) -> Iterator[Outcome]:
    """The outcome of a check, or one for each crash group."""
    fixes = evidence.expected.fixes
    if not one.each:
        yield _outcome(one, one.name, evidence)
        return
    for fix in fixes:
        name = f"{fix.crash} {one.name}" if len(fixes) > 1 else one.name
        yield _outcome(one, name, evidence, fix)


def _outcome(one: Check, name: str, *shown: object) -> Outcome:
    try:
        why = one.why(*shown)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is why this check fails)
        why = f"{type(error).__name__}: {error}"
    return Outcome(name, one.sentence, not why, why)
