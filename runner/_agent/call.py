"""What a tool sees of the call it runs in, and what a lookup may answer.

The key is no part of the arguments, which the model writes: a tool takes a parameter annotated `runner.Call`, or asks
`current_call()`, and sends `call.key` with its request.
"""

import contextvars
from collections.abc import Callable
from typing import Any, Generic, cast

import msgspec

from runner._agent import keys
from runner._agent.generics import Defaults, TypeVar
from runner._agent.workspace import Workspace
from runner.errors import NotInACall, NoWorkspace

Inputs_co = TypeVar("Inputs_co", covariant=True, default=object)
Resources_co = TypeVar("Resources_co", covariant=True, default=object)


class Call(Defaults, msgspec.Struct, Generic[Inputs_co, Resources_co], frozen=True):
    """One attempt of one call: `Call[Inputs, Resources]`; `Call` alone fits every agent.

    `n` counts attempts from 1; `arguments` are JSON values, defaults included; `inputs` are those of the run. `acts` is
    False in a tool that reads and in a lookup: what they send must not take the key. `operator_note` is what a person
    said when they let the call run again. `run` and `uid` name the run that made the key: a fork's parent for a call
    that it left in doubt. `sent` is for adapters: what this attempt has sent that may have acted, by the key that went
    with it. `resources` is what the agent's `resources` gave; `report` is behind `progress`.
    """

    run: str
    id: str
    tool: str
    n: int
    key: str
    arguments: dict[str, Any]
    uid: str = ""
    inputs: Inputs_co = cast("Any", None)
    files: Workspace | None = None
    acts: bool = True
    operator_notes: tuple[tuple[str, str], ...] = ()
    sent: dict[str, object] = {}
    resources: Resources_co = cast("Any", None)
    report: Callable[[float | None, str], None] = lambda _fraction, _text: None
    hold: Callable[[float], None] = lambda _: None

    def __repr__(self) -> str:
        return f"<call {self.id} of {self.tool} in {self.run}, attempt {self.n}>"

    @property
    def operator_note(self) -> str:
        """What a person last said when they let the call run again; empty when nobody said anything."""
        return next((said for _, said in reversed(self.operator_notes) if said), "")

    @property
    def workspace(self) -> Workspace:
        """The run's workspace. Raises `NoWorkspace` when it has none."""
        if self.files is None:
            raise NoWorkspace(None)
        return self.files

    def progress(self, fraction: float | None = None, text: str = "") -> None:
        """Tell whoever follows the run (`runner.stream`) how far this attempt is, from 0 to 1, and in words.

        It is not saved, and costs next to nothing while nobody follows.
        """
        self.report(fraction, text)

    def holding(self, seconds: float = 0.0) -> None:
        """Ask directly before an effect whether this process still holds the run, certainly for so many `seconds`.

        On several machines a run is held by a lease, which ends, as after a freeze; then another process may carry the
        run on, and bring about the same. `runner.web.key_hook` asks by itself.

        Raises:
            LockLost: It does not. Let it through: the call has no outcome then, and whoever carries the run on settles
                it.
        """
        self.hold(seconds)

    def subkey(self, n: int) -> str:
        """A key for the `n`-th further request of this call.

        It is as stable as `key`, and different from it.
        """
        return keys.key(self.uid, f"{self.id}/{n}")


CURRENT: contextvars.ContextVar[Call] = contextvars.ContextVar("refold_call")


def current_call() -> Call:
    """The call that this code runs in. Raises `NotInACall`."""
    call = CURRENT.get(None)
    if call is None:
        raise NotInACall
    return call


class Found(msgspec.Struct, frozen=True):
    """A lookup's answer: the effect has happened, and `result` is what the call returns."""

    result: object


class Missing(msgspec.Struct, frozen=True):
    """A lookup's answer, only when certain: the effect has not happened."""


class Unsure(msgspec.Struct, frozen=True):
    """A lookup's answer: the service can't say. A person is asked."""

    why: str = ""


LookupAnswer = Found | Missing | Unsure


class Verbatim(msgspec.Struct, frozen=True):
    """What a framework's tool returned: `value` as the log's readers see it, `raw` as its framework serialised it."""

    value: object
    raw: str


class Withdrawn(Exception):
    """Raised by a body that did nothing and whose call is still due: a framework interrupted it with `error`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error
