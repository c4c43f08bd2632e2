"""Steps: what a program computes between its calls, once, and what it is given of one that failed.

A failure is saved before the program sees it, and is the same in every life: the program may have gone on by it. One
that ends the program is tried again in the next life. Of a step that is cancelled nothing is saved: its body runs
again, and is cancelled again by whatever did that.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from replay.events import StepRecorded
from runner._agent import json_text, sanitize
from runner._durable import branches
from runner._durable.cursor import Cursor, built_in
from runner._durable.pump import Pump
from runner.errors import StepFailed


class Steps:
    """The steps of one life of a run."""

    def __init__(self, pump: Pump, cursor: Cursor) -> None:
        self._pump, self._cursor = pump, cursor

    async def take(self, name: str, body: Callable[[], object]) -> Any:
        """What the next step of this name came to, or comes to now."""
        self._pump.check()
        given: object = name
        if not isinstance(given, str) or json_text.without_surrogates(given) != given:  # before its body has run
            self._pump.refuse(f"the name of a step is {given!r:.60}, not text that a log holds")
        branch = branches.branch()
        n, known = self._cursor.step(branch, name)
        step = StepRecorded(name=name, n=n, raw="", branch=branch)
        branches.come_to(name, n)
        await asyncio.sleep(0)  # for others beside this one, which come in the order of the life that computed it
        cause = None
        if known is None:
            known, cause = await self._computed(step, body)
        if not known.error:
            return json.loads(known.raw)
        failed = built_in(known.error_type, known.error) or StepFailed(name, known.error)
        failed.refold_step = (self._pump.state.run, step)  # type: ignore[attr-defined] # see `again`
        raise failed from cause

    async def again(self, error: BaseException) -> None:
        """Have the steps tried again in the next life whose failure ended the program."""
        run = self._pump.state.run
        failed = {one.refold_step[1] for one in _whole(error) if getattr(one, "refold_step", ("",))[0] == run}
        if failed and self._pump.opened is not None:
            await self._pump.begun()
            for step in sorted(failed, key=lambda step: (step.branch, step.name, step.n)):
                await self._pump.record(step)

    async def _computed(self, step: StepRecorded, body: Callable[[], object]) -> tuple[StepRecorded, Exception | None]:
        pump = self._pump
        looks = pump.opened is None and not pump.rehearses and self._cursor.went_on(step.branch, step.name, step.n)
        if not looks:
            await pump.begun()
        cause = None
        try:
            with branches.entered(step.branch, step.name, step.n, "body"):
                value = body()
                value = await value if inspect.isawaitable(value) else value
        except Exception as error:  # noqa: BLE001 (the program's own, which it is given once that is saved)
            cause = error
            made = replace(step, error=sanitize.error(error), error_type=_kind(error))
        else:
            try:
                made = replace(step, raw=json.dumps(value, allow_nan=False))
            except (TypeError, ValueError, RecursionError) as error:
                pump.refuse(f"step {step.name} gave what JSON does not hold: {error}")
        if not looks:
            pump.executed += 1
            await pump.record(made)
        return made, cause


def _kind(error: Exception) -> str:
    """The nearest of Python's own errors that this one is a kind of, and that a text makes; else ""."""
    own = (kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return next((name for name in own if built_in(name, "")), "")


def _whole(error: BaseException) -> Iterator[Any]:
    """An error, what it came of, and what a group of errors holds."""
    seen, left = set[int](), [error]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            parts = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            left += [part for part in (one.__cause__, one.__context__, *parts) if part is not None]
