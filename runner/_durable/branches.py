"""Which branch of a program something belongs to: its steps are numbered in it.

Tasks side by side come in another order in each life, while each does its own things in the same one. So a task that a
program begins is a branch of the one that began it, known by the first thing that it does. The body of a step or of a
call is a branch as well: it does not run again once its result is recorded.
"""

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import Iterator

import replay

Place = tuple[weakref.ref[asyncio.Task[object]] | None, str]
"""A branch, and the task that it is."""

_PLACE: contextvars.ContextVar[Place] = contextvars.ContextVar("refold_branch", default=(None, ""))


def branch() -> str:
    """The branch of this code; that of whoever began its task as long as the task has done nothing."""
    return _PLACE.get()[1]


def come_to(*what: object) -> None:
    """Note what this task comes to: the first such thing makes a branch of it."""
    task, within = _PLACE.get()
    if task is None or task() is not asyncio.current_task():
        enter(within, *what)


def enter(*what: object) -> None:
    """Be the branch that is known by this, in this task and those that it begins; by nothing, a program's top: ""."""
    task = asyncio.current_task() if asyncio._get_running_loop() else None  # noqa: SLF001 (a thread may have none)
    _PLACE.set((None if task is None else weakref.ref(task), replay.digest_value(what) if what else ""))


@contextlib.contextmanager
def entered(*what: object) -> Iterator[None]:
    """As `enter`, and be in the same branch as before afterwards."""
    before = _PLACE.get()
    enter(*what)
    try:
        yield
    finally:
        _PLACE.set(before)
