"""Perform: the only code that acts on an intent. It never raises: what came back are outcomes.

An error does not mean that nothing happened. `ToolFailed` says that this attempt did nothing; any other error of a call
that can change something leaves it in doubt, exactly like a crash. A read that raised has failed, and a body that could
not be called has not acted. What a shutdown cuts off has no outcome at all: the next life finds its marker and holds
the call in doubt.

Nothing begins unless this process certainly holds the run: that is asked last, in a tool's own thread directly before
its body, because a process may have been frozen since it saved the marker. What is refused has no outcome, and ends the
life with `LockLost`. A repeat whose key was forgotten meanwhile did nothing, and its call climbs on.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

import msgspec

import eventlog
from replay import CallState, Event, State
from replay import events as e
from replay.events import AttemptMarked, LookupAnswered, LookupAsked, ModelAsked, ModelFailed
from runner import _logging
from runner._agent import sanitize
from runner._agent.agent import AnyAgent
from runner._agent.arguments import Arguments
from runner._agent.call import CURRENT, Call, Found, Missing, Unsure, Verbatim
from runner._agent.tools import Tool
from runner._agent.workspace import Workspace
from runner._engine import outcomes
from runner._engine.bell import NO_THREAD
from runner._engine.feed import Teller
from runner._engine.flight import Drain, Flight, Outcomes
from runner._engine.inflight import InFlight
from runner._policy import ladder, request
from runner.errors import ModelError, ToolFailed

MISTAKES = (TypeError, AttributeError, NameError, ImportError, NotImplementedError, AssertionError)
"""What a model's own code raises where it is wrong: asked again it would come to the same."""
Files = Callable[[str, bool], Workspace | None]


class Executor(msgspec.Struct, eq=False):
    """What a life may touch: its agent's model and tools, and the workspace for a call (`files(call, writable)`)."""

    agent: AnyAgent
    log: eventlog.Log
    files: Files
    inflight: InFlight
    flight: Flight
    drain: Drain
    teller: Teller
    now: Callable[[], datetime]
    resources: Any = None
    child: Callable[[State, e.ChildStarted], Coroutine[Any, Any, Outcomes]] | None = None

    def begin(self, state: State, intents: list[Event]) -> None:
        """Begin to do what the intents say, side by side."""
        for intent in intents:
            if isinstance(intent, AttemptMarked):
                self.flight.begin(self._attempt, state, intent)
            elif isinstance(intent, ModelAsked):
                self.flight.begin(self._ask, state)
            elif isinstance(intent, e.ChildStarted) and self.child is not None:
                self.flight.begin(self.child, state, intent)
            elif isinstance(intent, LookupAsked):
                self.flight.begin(self._lookup, state, intent)

    def hold(self, seconds: float = 0.0) -> None:
        """Raise `LockLost` unless this process certainly holds the run for so long."""
        if not self.log.holds(seconds):
            raise eventlog.LockLost(self.log.run)

    def _may(self, tool: Tool, call: CallState) -> None:
        """Raise unless the attempt may begin now: not with a key that its service may have forgotten since."""
        self.hold()
        doubtful = any(attempt.did != "nothing" for attempt in call.attempts[:-1])
        if doubtful and tool.effect == "keyed" and not ladder.remembered(tool, call.attempts, self.now()):
            raise ToolFailed("it was not sent: before it could begin, its key was too old to be remembered")

    async def _ask(self, state: State) -> Outcomes:
        try:
            asked = request.build(self.agent, state, state.at)
            self.hold()
            coming: Any = self.agent.model.ask(self.teller.listening(asked))
            if not hasattr(coming, "__await__"):  # asked again it would be paid again
                why = f"the model's `ask` gave {type(coming).__name__}, and not in an `async def`"
                raise ModelError(why, transient=False, billed=True)  # noqa: TRY301 (told as what it raises itself)
            reply = outcomes.storable(await coming, state.turns + 1, asked.purpose)
            return Outcomes([e.ReplySaved(reply=reply)])
        except ModelError as error:
            failed = ModelFailed(
                error=sanitize.error(error.why),
                transient=bool(error.transient),
                billed=bool(error.billed),
                retry_after=sanitize.seconds(error.retry_after),
                error_type=outcomes.type_of(error.__cause__ or error),
                refused_conversation=bool(error.refused_conversation),
            )
        except BaseException as error:
            if self._cut(error) or isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            failed = ModelFailed(
                error=sanitize.error(error),
                transient=not isinstance(error, MISTAKES),
                billed=True,
                error_type=outcomes.type_of(error),
            )
        _logging.logger(run=state.run).info("model failed", error=failed.error, transient=failed.transient)
        return Outcomes([failed])

    def _call(self, state: State, call: CallState, plain: dict[str, Any], *, writable: bool) -> Call[Any, Any]:
        attempt = call.attempts[-1]
        return Call(
            uid=call.attempts[0].uid,
            run=call.attempts[0].run,  # a fork's retry is its parent's call: same key, same sub-keys, same words
            id=call.call.id,
            tool=call.call.tool,
            n=attempt.n,
            key=attempt.key,
            arguments=dict(plain),
            inputs=self.agent.load_inputs(state.inputs),
            files=self.files(call.call.id, writable),
            acts=writable,
            resources=self.resources,
            report=functools.partial(self.teller.progress, self.agent, state.turns, call, plain),
            operator_notes=ladder.operator_notes(call, state) if call.settle_questions else (),
            hold=self.hold,
        )

    def known(self, state: State, call: str) -> tuple[CallState, Tool, Arguments]:
        """A call of the current reply, its tool, and its arguments as that takes them."""
        found = state.find(call)
        tool = self.agent.tool(found.call.tool) if found is not None else None
        assert found is not None  # decide begins only calls of this reply
        assert tool is not None  # for tools that the agent has
        return found, tool, tool.prepare(found.arguments)

    async def _attempt(self, state: State, marked: AttemptMarked) -> Outcomes:
        call, tool, prepared = self.known(state, marked.call)
        believed = state.earlier_effect(tool.name) is None
        context = self._call(state, call, prepared.plain, writable=not (believed and tool.effect == "reads"))
        values = {} if tool.signature.given else {**(prepared.values or {})}
        if tool.signature.call is not None:
            values[tool.signature.call] = context
        CURRENT.set(context)
        secrets = sanitize.secrets_of(tool.secret, context.arguments) if tool.secret else ()
        body = functools.partial(tool.function, **values)
        fatal: BaseException | None = None
        ended: Event
        try:
            may = functools.partial(self._may, tool, call)
            value = await self._run(tool, body, may, in_loop=tool.is_async, abandon=not context.acts)
        except BaseException as error:
            if self._cut(error):
                raise
            fatal = error if isinstance(error, KeyboardInterrupt | SystemExit) else None
            ended = outcomes.ended(marked, context, body, error, secrets)
        else:
            value, raw = (value.value, sanitize.raw(value.raw, secrets)) if isinstance(value, Verbatim) else (value, "")
            stored = sanitize.result(value, secrets)
            ended = e.ResultRecorded(call=marked.call, how="ran", n=marked.n, raw=raw, **stored.fields())
        finally:
            if context.files is not None:
                context.files.seal()
        return Outcomes([*context.files.written, ended] if context.files is not None else [ended], fatal)

    async def _lookup(self, state: State, asked: LookupAsked) -> Outcomes:
        call, tool, prepared = self.known(state, asked.call)
        context = self._call(state, call, prepared.plain, writable=False)
        CURRENT.set(context)
        find, secrets = tool.find, sanitize.secrets_of(tool.secret, context.arguments)
        assert find is not None  # decide asks only tools that have a lookup
        try:
            in_loop = inspect.iscoroutinefunction(find)
            looked = await self._run(tool, functools.partial(find, context), self.hold, in_loop=in_loop, abandon=True)
        except BaseException as error:
            if self._cut(error) or isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            why, after = sanitize.error(error, secrets), outcomes.retry_after(context, error)
            return Outcomes([LookupAnswered(call=asked.call, said="unsure", error=why, retry_after=after)])
        if isinstance(looked, Found):
            stored = sanitize.result(looked.result, secrets)
            return Outcomes([e.ResultRecorded(call=asked.call, how="found", **stored.fields())])
        if isinstance(looked, Missing):
            return Outcomes([LookupAnswered(call=asked.call, said="missing")])
        if isinstance(looked, Unsure):
            return Outcomes([LookupAnswered(call=asked.call, said="unsure", why=sanitize.error(looked.why, secrets))])
        other = f"the lookup returned {type(looked).__name__}, not Found, Missing or Unsure"
        return Outcomes([LookupAnswered(call=asked.call, said="unsure", error=other)])

    def _cut(self, error: BaseException) -> bool:
        """Whether a shutdown cuts off what is in flight, or the run is lost, and not a cancellation of a tool's own."""
        if isinstance(error, eventlog.LockLost) and error.run == self.log.run:
            return True
        task = asyncio.current_task()
        cancelled = self.drain.cut or (task is not None and task.cancelling() > 0)
        return isinstance(error, asyncio.CancelledError) and cancelled

    async def _run(
        self, tool: Tool, body: functools.partial[Any], may: Callable[[], None], *, in_loop: bool, abandon: bool
    ) -> object:
        """Run a tool's body or lookup within its timeout: a coroutine function in the loop, any other in a thread.

        `may` is asked directly before it, and raises where it must not begin.

        `abandon`: a thread that timed out may be left, because it only reads; the lock does not wait for it. Any other
        is waited for, since its call is in flight until it ends, and what it returns then is its result.
        """
        self.flight.limit(tool.timeout)
        try:
            if in_loop:
                may()
                return await body()

            def held() -> object:
                may()
                return body()

            value = await self._in_thread(tool, held, abandon=abandon)
            if inspect.isawaitable(value):
                self.flight.limit(tool.timeout)
                value = await value
        except asyncio.CancelledError as error:
            if self.flight.is_late():
                raise TimeoutError(f"no answer within {tool.timeout:g} s") from error
            raise
        return value

    async def _in_thread(self, tool: Tool, body: Callable[[], object], *, abandon: bool) -> object:
        try:
            running = self.inflight.thread(body, acts=not abandon)
        except NO_THREAD as error:
            raise ToolFailed(f"its thread could not be started: {error}", retry_after=1.0) from error
        while not running.is_over:
            try:
                await running.news()
            except asyncio.CancelledError:
                late = self.flight.is_late()
                if running.is_over:
                    break
                if not late:
                    raise
                if abandon:
                    raise TimeoutError(f"no answer within {tool.timeout:g} s") from None
                _logging.logger(tool=tool.name).warning("timed out, and its thread still runs", timeout=tool.timeout)
        return running.result()
