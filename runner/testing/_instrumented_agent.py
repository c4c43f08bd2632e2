"""The user's agent with crash points before, inside and after each ask, call and lookup, and with service faults.

The user's objects are not changed: tools are wrapped by `Tool.around`, the model by another object with `bound` and
`ask`. A sync body runs in the loop, so that everything has one order; with the fault `thread` it runs in a thread and
acts after its timeout. A body's own `finally` still runs when its process dies inside it; only a real kill skips it.
"""

import asyncio
import contextlib
import contextvars
import functools
import inspect
import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

import runner
from runner.testing._around import instrumented
from runner.testing._points import CrashPoints
from runner.testing._service_faults import Attempt
from runner.testing._virtual import Threads, waited
from runner.testing._world import LateEffect, World

Step = Callable[[Callable[[], Any]], Any]
Act = Callable[..., Coroutine[Any, Any, object]]

_COME_AGAIN: Final = 1.0
_OVERDUE: Final = 1.5


@dataclass(frozen=True)
class Instruments:
    """Instruments an agent for one simulated process; made in that process's own loop."""

    world: World
    points: CrashPoints
    threads: Threads

    def agent(self) -> runner.Agent[Any, Any, Any]:
        """The user's agent, made anew and instrumented."""
        agent = self.world.inputs.made(self.world.outside)
        self.world.compare(agent)
        return instrumented(agent, self.ask, self.tool, instrument=self.tool)

    def tool(self, tool: runner.Tool) -> runner.Tool:
        """One tool, without its key or lookup if they are taken away."""
        tool = tool.around(lambda body: body)
        if "keys" in self.world.without and tool.effect == "keyed":
            tool.effect, tool.key_ttl = "non_idempotent", None
        if "lookups" in self.world.without:
            tool.find = None
        fault = self.world.fault
        if fault is not None and fault.in_thread and fault.tool == tool.name:
            other = tool.around(lambda body: functools.partial(self.in_its_thread, tool, body))
        else:
            other = tool.around(lambda body: functools.partial(self.body, tool, body))
        other.find = None if tool.find is None else functools.partial(self.look, tool.find)
        return other

    async def body(self, tool: runner.Tool, body: Callable[..., object], /, **given: object) -> object:
        """A tool's body: a point before, at every moment it waits, and after."""
        call = runner.current_call()
        name = self.world.name(call.run, call.id)
        what = f"tool {tool.name} {name}"
        with self.points.around(what) as inside:
            if tool.effect == "reads":
                return await stepped(functools.partial(body, **given), inside)
            self._note(tool, name)
            act = functools.partial(self._act, name, functools.partial(body, **given), alone=not tool.parallel)
            return await self._acts(call, act, inside, what)

    def _note(self, tool: runner.Tool, call: str) -> None:
        declares = tool.effect, tool.find is not None, tool.visible_within, not tool.is_async
        self.world.attempts.append(Attempt(call, tool.name, *declares))

    async def _act(
        self,
        call: str,
        body: Callable[[], object],
        passed: Callable[[], None] = lambda: None,
        *,
        alone: bool,
        hangs: bool = False,
    ) -> object:
        """Run a body, noting what happens as this call's, even if it is interrupted.

        Where it is not `alone`, what happens between its steps is another call's.
        """
        noting = functools.partial(self.world.noting, call)

        def noted(step: Callable[[], Any]) -> Any:
            with noting():
                return step()

        with noting() if alone else contextlib.nullcontext():
            value = await stepped(body, passed, hangs=hangs, taken=_take if alone else noted)
            self.world.values[call] = value
        return value

    async def _acts(self, call: runner.Call, act: Act, inside: Callable[[], None], what: str) -> object:
        """An attempt as the service treats it."""
        behavior = self._behavior(call)
        if behavior == "late":
            return await self._sends(call, act, what)
        if behavior == "refuses":
            raise runner.ToolFailed("connection refused", retry_after=_COME_AGAIN)
        if behavior == "no":
            raise runner.ToolFailed("the service says no")
        if behavior == "hang":
            return await act(inside, hangs=True)
        if behavior == "nothing":
            raise runner.OutcomeUnknown("the connection broke before a reply came")
        value = await act(inside)
        if behavior == "acts":
            self.points.at(f"{what}, replying")
            raise runner.OutcomeUnknown("the reply was lost")
        return value

    def _behavior(self, call: runner.Call) -> str:
        """How the service treats this attempt; attempts of earlier processes count."""
        fault = self.world.fault
        if fault is None or self.world.name(call.run, call.id) != fault.call or call.n > len(fault.behaviors):
            return ""
        return fault.behaviors[call.n - 1]

    async def _sends(self, call: runner.Call, act: Act, what: str) -> object:
        """Send the request and get no answer, until the timeout or the end of this process."""
        world, fault = self.world, self.world.fault
        assert fault is not None
        context = contextvars.copy_context()
        context.run(waited.set, True)  # noqa: FBT003 (a context variable's value)
        msgspec.structs.force_setattr(call, "hold", lambda _: None)  # it was asked before it was sent
        late = LateEffect(lambda: asyncio.get_running_loop().create_task(act(), context=context), fault.lands)
        world.late.append(late)
        try:
            self.points.at(f"{what}, on its way")
            return await asyncio.get_running_loop().create_future()  # nobody ever answers
        finally:
            late.due = world.time.now + late.within
            if not self.points.dead and late.within:
                late.schedule()
            elif not self.points.dead:  # before anything else can be asked
                await late.land()

    def in_its_thread(self, tool: runner.Tool, body: Callable[..., object], /, **given: object) -> object:
        """A sync body that acts after its timeout, in the thread that the runner gave it."""
        call = runner.current_call()
        name = self.world.name(call.run, call.id)
        assert self.world.fault is not None
        after = tool.timeout * _OVERDUE if (name, call.n) == (self.world.fault.call, 1) else 0.0
        with self.points.around(f"tool {tool.name} {name}"):
            self._note(tool, name)
            self.threads.act_after(after, alone=not tool.parallel)
            self.points.alive()
            value = self.world.values[name] = body(**given)
            # Only the loop's thread may count effects: the environment was made there.
            self.world.acted[name] += 1
            return value

    async def look(self, find: Callable[[runner.Call], object], call: runner.Call, /) -> object:
        """A lookup: a point before, at every moment it waits, and after. It raises while it is down."""
        name = self.world.name(call.run, call.id)
        with self.points.around(f"lookup {call.tool} {name}") as inside:
            if self.world.fault is not None and self.world.fault.call == name:
                self.world.looked += 1
                if self.world.looked <= self.world.fault.down:
                    raise ConnectionError("the lookup is down")
            return await stepped(lambda: find(call), inside)

    async def ask(self, model: runner.Model, request: runner.Request) -> runner.Reply:
        """The model's reply, between two points; the same reply, asked for again, may be worded differently."""
        world = self.world
        turn = world.name(request.run, request.turn)
        if request.purpose == "turn" and request.turn <= world.saved.get(turn.removesuffix(f"{request.turn}"), 0):
            world.problems.append(f"turn {turn} was asked for again, and its reply was on the disk")
        with self.points.around(f"model {request.purpose} {turn}") as inside:
            reply = await stepped(lambda: model.ask(request), inside)
            assert isinstance(reply, runner.Reply)
            world.replies[request.purpose, turn] += 1
            is_again = world.replies[request.purpose, turn] > 1
            return world.reword(reply) if is_again and world.reword is not None else reply


def _take(step: Callable[[], Any]) -> Any:
    return step()


async def stepped(
    body: Callable[[], object], passed: Callable[[], None], *, hangs: bool = False, taken: Step = _take
) -> object:
    """What `body` comes to, awaited if need be; `passed` is called at every moment that it waits.

    With `hangs` its first wait never ends, so it gets the `CancelledError` of its timeout there. `taken` takes each of
    its steps.
    """
    value = taken(body)
    if inspect.iscoroutine(value):
        never = asyncio.get_running_loop().create_future() if hangs else None
        return await _steps(value, passed, never, taken)
    return await value if inspect.isawaitable(value) else value


@types.coroutine
def _steps(
    body: Coroutine[Any, Any, object], passed: Callable[[], None], never: asyncio.Future[None] | None, taken: Step
) -> Generator[Any, Any, object]:
    step: Callable[[], Any] = functools.partial(body.send, None)
    while True:
        try:
            waits_for = taken(step)
        except StopIteration as end:
            return end.value
        if never is not None:
            waits_for, never = never, None
            waits_for._asyncio_future_blocking = True  # noqa: SLF001 (how a future says to its task that it is awaited)
        try:
            passed()
            got = yield waits_for
            step = functools.partial(body.send, got)
        except BaseException as error:  # noqa: BLE001 (the waiting body gets every error)
            step = functools.partial(body.throw, error)
