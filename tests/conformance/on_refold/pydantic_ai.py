"""A pytest plugin: every agent that pydantic-ai's own tests run is on a log, `pytest -p on_refold.pydantic_ai`.

With REFOLD_REPLAY=1 each run that ended is run again on its log: nothing may be executed, and the messages are the
same. The tests themselves are not judged then: their own counters count twice.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import uuid
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.agent import AbstractAgent

import runner
from runner import pydantic_ai as ours
from runner.adapters import current

from .counted import COUNTS, REPLAY, RUNS, Reads

_CHANGES = ("timestamp", "run_id", "conversation_id")
_numbers = itertools.count()
_init, _run = Agent.__init__, AbstractAgent.run


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items() if key not in _CHANGES}
    return [_plain(member) for member in value] if isinstance(value, list) else value


@functools.wraps(_init)
def _new_init(self: Any, *args: Any, capabilities: Any = None, name: Any = None, **named: Any) -> None:
    mine = ours.Refold(tools=Reads(), name=name or f"agent-{next(_numbers)}", approvals=False)
    _init(self, *args, capabilities=[*(capabilities or []), mine], name=name, **named)


@functools.wraps(_run)
async def _new_run(self: Any, *args: Any, **named: Any) -> Any:
    if current() is not None:
        return await _run(self, *args, **named)
    if named.pop("infer_name", True) and self.name is None:
        self._infer_name(inspect.currentframe())
    named["infer_name"] = False  # the name of a variable here
    run = uuid.uuid4().hex

    def block() -> Any:
        return runner.durable("a test", runs=RUNS.name, run=run, name="tested", framework="pydantic-ai")

    async with block():
        first = await _run(self, *args, **named)
    COUNTS.runs += 1
    if REPLAY:
        with COUNTS.replaying():
            async with block() as here:
                again = await _run(self, *args, **named)
            was, now = (_plain(json.loads(one.all_messages_json())) for one in (first, again))
            COUNTS.judge(was, now, here.pump.executed)
    return first


Agent.__init__ = _new_init  # type: ignore[method-assign]
AbstractAgent.run = _new_run  # type: ignore[method-assign]
