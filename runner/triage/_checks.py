"""The catalogue of checks, by task, and how they are held.

A check is a name, a sentence, where it looks, and a function that returns why it fails. It never raises: what it
trips over is its reason to fail. A check that could crash would end the list exactly when it has something to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal, NamedTuple

from runner.triage import _checks_log as log
from runner.triage import _checks_world as world
from runner.triage._evidence import Evidence
from runner.triage._task import Task
from runner.triage._world import World

Why = Callable[[Evidence], str]


class Check(NamedTuple):
    """One check. `sentence` is what holds when it is ok; `looks` at the world alone, or at the log too."""

    name: str
    looks: Literal["world", "log"]
    why: Why

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
        Check("names-crash", "world", world.names_crash),
        Check("patched-once", "world", world.patched_once),
        Check("only-intended-files", "world", world.only_intended),
        Check("suite-green", "world", world.suite_green),
        Check("test-present", "world", world.test_present),
        Check("test-bites", "world", world.test_bites),
        Check("crash-gone", "world", world.crash_gone),
        Check("no-leftovers", "world", world.no_leftovers),
        Check("same-key", "log", log.same_key),
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
    return [_hold(one, evidence) for one in CATALOGUE[task.name] if not only or one.name in only]


def _hold(one: Check, evidence: Evidence) -> Outcome:
    try:
        why = one.why(evidence)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is why this check fails)
        why = f"{type(error).__name__}: {error}"
    return Outcome(one.name, one.sentence, not why, why)
