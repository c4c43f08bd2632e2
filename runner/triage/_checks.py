"""The catalogue of checks, by task, and how they are made.

A check never raises: what it trips over is its reason to fail. A check that could crash would end the list exactly when
it has something to say.

Some checks are made once for each crash group of a kind; where a task has several, the group's number stands before the
check's name.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from runner.triage import _checks_log, _checks_world  # noqa: F401 (each adds its checks)
from runner.triage._evidence import CHECKS, Check, Evidence, Failed
from runner.triage._task import Fix, Same, Task, Unseen, names


class Outcome(NamedTuple):
    """What a check found; `why` is empty when it is ok."""

    name: str
    sentence: str
    ok: bool
    why: str

    def __str__(self) -> str:
        return f"ok      {self.name}  {self.sentence}" if self.ok else f"FAILED  {self.name}  {self.why}"


CATALOGUE = {task: tuple(CHECKS[name] for name in Task(task).checks) for task in names()}
"""The checks of every task, in the order they are printed."""


def check(evidence: Evidence, only: Collection[str] = ()) -> list[Outcome]:
    """Make the task's checks, all or those named in `only`. Never raises."""
    chosen = [one for one in CATALOGUE[evidence.task.name] if not only or one.name in only]
    return [outcome for one in chosen for outcome in _held(one, evidence)]


def _held(one: Check, evidence: Evidence) -> Iterator[Outcome]:
    """The outcome of a check, or one for each crash group."""
    if not one.each:
        yield _outcome(one, one.name, evidence)
        return
    groups: tuple[Fix | Same | Unseen, ...] = getattr(evidence.task.expected, one.each)
    for group in groups:
        name = f"{group.crash} {one.name}" if len(groups) > 1 else one.name
        yield _outcome(one, name, evidence, group)


def _outcome(one: Check, name: str, *shown: object) -> Outcome:
    try:
        one.why(*shown)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is why this check fails)
        why = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
        return Outcome(name, one.sentence, ok=False, why=why)
    return Outcome(name, one.sentence, ok=True, why="")
