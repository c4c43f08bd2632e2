"""What a tool sees of the call it runs in, and what a lookup may answer.

The key travels beside the arguments, never in arguments the model writes (spec row 19): a tool takes a parameter
annotated `runner.Call`, or asks `current_call()`, and sends `call.key` with its request.
"""

from __future__ import annotations

import contextvars
import dataclasses
from dataclasses import dataclass
from typing import Any

from runner import _keys
from runner._workspace import Workspace
from runner.errors import NoWorkspace, RunError


@dataclass(frozen=True)
class Call:
    """One attempt of one call. `n` counts attempts from 1; `arguments` is what the model wrote, parsed.

    `acts` is False in a tool that reads and in a lookup: what they send must not take the key. `told` is what a person
    said when they let the call run again. `run` is the run that made the key: a fork's parent for a call that it left
    open. `sent` is for adapters: what this attempt has sent that may have acted, by the key that went with it.
    """

    run: str
    id: str
    tool: str
    n: int
    key: str
    arguments: dict[str, Any]
    files: Workspace | None = dataclasses.field(default=None, repr=False)
    acts: bool = True
    told: str = ""
    sent: dict[str, object] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @property
    def workspace(self) -> Workspace:
        """The run's workspace. Raises `NoWorkspace` when it has none."""
        if self.files is None:
            raise NoWorkspace(None)
        return self.files

    def subkey(self, n: int) -> str:
        """A key for the `n`-th further request of this call (spec row 19).

        It is as stable as `key`, and different from it.
        """
        return _keys.key(self.run, f"{self.id}/{n}")


class NotInACall(RunError):
    """`current_call()` was asked outside of a tool."""

    hint = "Call it in a tool or a lookup, in the same task or thread (or one that carries the context)."

    def __str__(self) -> str:
        return "no call is running here"


CURRENT: contextvars.ContextVar[Call] = contextvars.ContextVar("refold_call")


def current_call() -> Call:
    """The call that this code runs in. Raises `NotInACall`."""
    call = CURRENT.get(None)
    if call is None:
        raise NotInACall
    return call


@dataclass(frozen=True)
class Found:
    """A lookup's answer: the effect is in the world, and `result` is what the call returns."""

    result: object


@dataclass(frozen=True)
class Missing:
    """A lookup's answer, only when certain: the effect is not in the world."""


@dataclass(frozen=True)
class Unsure:
    """A lookup's answer: the service can't say. A person is asked."""

    why: str = ""


Looked = Found | Missing | Unsure
