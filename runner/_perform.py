"""Perform: the only code that lets an intent reach the outside world. It never raises: what came back are outcomes.

An error is not a no (spec row 22). `ToolFailed` says that this attempt did nothing; whatever else comes out of a call
that can change something leaves it open, exactly like a crash. A read that raised has simply failed. What a shutdown
cuts off has no outcome at all: the next life finds its marker and calls it open.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from replay import (
    AttemptEnded,
    AttemptMarked,
    CallState,
    Event,
    LookupAnswered,
    LookupAsked,
    ModelAsked,
    ModelFailed,
    ReplySaved,
    ResultRecorded,
    State,
)
from runner import _arguments, _door, _ladder, _log
from runner._agent import Agent
from runner._call import CURRENT, Call, Found, Missing, Unsure
from runner._decide import request
from runner._replies import storable
from runner._tools import Tool
from runner._work import Parking, Work, settle
from runner._workspace import Workspace
from runner.errors import ModelError, NeedsPerson, ToolFailed, Unknown

Files = Callable[[str, bool], Workspace | None]


@dataclass
class Outcomes:
    """What came back. `error` travels beside the events: it is raised once they are saved."""

    events: list[Event] = field(default_factory=list)
    error: BaseException | None = None


@dataclass(frozen=True)
class World:
    """What a life may touch: its agent's model and tools, and the workspace for a call (`files(call, writable)`)."""

    agent: Agent
    files: Files
    work: Work
    parking: Parking

    async def perform(self, state: State, intents: list[Event]) -> Outcomes:
        """Do what the intents say, side by side; outcomes come in their order.

        A task that was cut off, or whose tool does not end, contributes nothing.
        """
        tasks = [self.work.task(job) for intent in intents if (job := self._job(state, intent)) is not None]
        cancelled = await settle(tasks, self.parking) if tasks else False
        outcomes = Outcomes(error=asyncio.CancelledError() if cancelled else None)
        for task in tasks:
            if not task.done():
                continue
            if task.cancelled():  # cut off, perhaps by somebody else's hand: then the run is cut off too
                if not self.parking.cut:
                    outcomes.error = outcomes.error or asyncio.CancelledError()
                continue
            error = task.exception()
            if error is None:
                outcomes.events += task.result().events
                error = task.result().error
            outcomes.error = outcomes.error or error
        return outcomes

    def _job(self, state: State, intent: Event) -> Any:
        if isinstance(intent, AttemptMarked):
            return self._attempt(state, intent)
        if isinstance(intent, ModelAsked):
            return self._ask(state)
        return self._lookup(state, intent) if isinstance(intent, LookupAsked) else None

    async def _ask(self, state: State) -> Outcomes:
        log = _log.logger(run=state.run)
        try:
            asked = request(self.agent, state, state.at)
            reply = storable(await self.agent.model.ask(asked), state.turns + 1, asked.purpose)
            return Outcomes([ReplySaved(reply=reply)])
        except ModelError as error:
            failed = ModelFailed(
                error=_door.error(error.why),
                transient=bool(error.transient),
                billed=bool(error.billed),
                retry_after=_door.seconds(error.retry_after),
            )
        except BaseException as error:
            if self._cut(error) or isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            failed = ModelFailed(error=_door.error(error), transient=True, billed=True)
        log.info("model failed", error=failed.error, transient=failed.transient)
        return Outcomes([failed])

    def _call(self, state: State, call: CallState, *, writable: bool) -> Call:
        attempt = call.attempts[-1]
        return Call(
            run=call.attempts[0].run,  # a fork's retry is its parent's call: same key, same sub-keys, same words
            id=call.call.id,
            tool=call.call.tool,
            n=attempt.n,
            key=attempt.key,
            arguments=_arguments.parse(call.call.arguments),
            files=self.files(call.call.id, writable),
            acts=writable,
            told=_ladder.said(call, state),
        )

    def _known(self, state: State, call: str) -> tuple[CallState, Tool]:
        found = state.find(call)
        tool = self.agent.tool(found.call.tool) if found is not None else None
        assert found is not None  # decide marks only calls of this reply
        assert tool is not None  # for tools that the agent has
        return found, tool

    async def _attempt(self, state: State, marked: AttemptMarked) -> Outcomes:
        call, tool = self._known(state, marked.call)
        context = self._call(state, call, writable=tool.effect != "reads")
        values = _arguments.bind(tool.signature.type, context.arguments)
        if tool.signature.call is not None:
            values[tool.signature.call] = context
        CURRENT.set(context)
        try:
            return await self._outcomes(tool, marked, values, context)
        finally:
            if context.files is not None:
                context.files.seal()

    async def _outcomes(self, tool: Tool, marked: AttemptMarked, values: dict[str, object], context: Call) -> Outcomes:
        outcomes = Outcomes()
        ended: Event
        try:
            body = functools.partial(tool.function, **values)
            value = await self._run(tool, body, abandon=tool.effect == "reads")
        except ToolFailed as failed:
            ended = self._ended(tool, marked, failed.why, did="nothing", retry_after=failed.retry_after)
        except BaseException as error:
            if self._cut(error):
                raise
            if isinstance(error, KeyboardInterrupt | SystemExit):
                outcomes.error = error
            ended = self._ended(
                tool,
                marked,
                error.why if isinstance(error, Unknown) else error,
                did="nothing" if tool.effect == "reads" and not isinstance(error, NeedsPerson) else "unknown",
                retry_after=error.retry_after if isinstance(error, Unknown) else None,
                asks=isinstance(error, NeedsPerson),
            )
        else:
            stored = _door.result(value, tool.secret)
            ended = ResultRecorded(call=marked.call, how="ran", text=stored.text, lossy=stored.lossy, n=marked.n)
        if context.files is not None:
            context.files.seal()
            outcomes.events += context.files.written
        outcomes.events.append(ended)
        return outcomes

    def _ended(
        self,
        tool: Tool,
        marked: AttemptMarked,
        error: BaseException | str,
        *,
        did: Any,
        retry_after: object,
        asks: bool = False,
    ) -> AttemptEnded:
        text = _door.error(error, tool.secret)
        _log.logger(call=marked.call, key=marked.key).info("attempt ended", did=did, error=text)
        after = _door.seconds(retry_after)
        return AttemptEnded(call=marked.call, n=marked.n, did=did, error=text, retry_after=after, asks=asks)

    async def _lookup(self, state: State, asked: LookupAsked) -> Outcomes:
        call, tool = self._known(state, asked.call)
        context = self._call(state, call, writable=False)
        CURRENT.set(context)
        find = tool.find
        assert find is not None  # decide asks only tools that have a lookup
        try:
            looked = await self._run(tool, functools.partial(find, context), abandon=True)
        except BaseException as error:
            if self._cut(error) or isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return Outcomes([LookupAnswered(call=asked.call, said="unsure", error=_door.error(error, tool.secret))])
        if isinstance(looked, Found):
            stored = _door.result(looked.result, tool.secret)
            return Outcomes([ResultRecorded(call=asked.call, how="found", text=stored.text, lossy=stored.lossy)])
        if isinstance(looked, Missing):
            return Outcomes([LookupAnswered(call=asked.call, said="missing")])
        if isinstance(looked, Unsure):
            return Outcomes([LookupAnswered(call=asked.call, said="unsure", why=_door.error(looked.why, tool.secret))])
        other = f"the lookup returned {type(looked).__name__}, not Found, Missing or Unsure"
        return Outcomes([LookupAnswered(call=asked.call, said="unsure", error=other)])

    def _cut(self, error: BaseException) -> bool:
        """Whether a shutdown cuts off what is in flight, as opposed to a cancellation that a tool made for itself."""
        task = asyncio.current_task()
        cancelled = self.parking.cut or (task is not None and task.cancelling() > 0)
        return isinstance(error, asyncio.CancelledError) and cancelled

    async def _run(self, tool: Tool, body: functools.partial[object], *, abandon: bool) -> object:
        """Run a tool's body or lookup within its timeout: a coroutine function in the loop, any other in a thread.

        `abandon`: a thread that timed out may be left behind, because it only reads; it still holds the lock. Any other
        is waited for, since its call is in flight until it ends, and what it returns then is its result.
        """
        if inspect.iscoroutinefunction(body.func):
            async with asyncio.timeout(tool.timeout):
                return await cast("Awaitable[object]", body())
        value = await self._in_thread(tool, body, abandon=abandon)
        if inspect.isawaitable(value):
            async with asyncio.timeout(tool.timeout):
                return await value
        return value

    async def _in_thread(self, tool: Tool, body: Callable[[], object], *, abandon: bool) -> object:
        box = self.work.thread(body)
        future = asyncio.wrap_future(box)
        try:
            done, _ = await asyncio.wait({future}, timeout=tool.timeout)
            if not done:
                if abandon:
                    message = f"no answer within {tool.timeout:g} s"
                    raise TimeoutError(message)
                _log.logger(tool=tool.name).warning("timed out, and its thread still runs", timeout=tool.timeout)
                await asyncio.wait({future})
        except asyncio.CancelledError:
            if not box.done():
                raise
        finally:
            future.cancel()
        return box.result()
