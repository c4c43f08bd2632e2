"""The cast: a user's agent as one simulated life plays it, each of its seams a point, each of its troubles played.

Nothing of the user's is changed for it: tools are wrapped by `Tool.around`, the model is another object with `bound`
and `ask`. A sync body runs in the loop, so that all lives have one order; in trouble `thread` it has its own, and acts
after its timeout. A body's own `finally` still runs when its life ends inside of it: only a real death skips it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import types
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import runner
from runner.crashtest._points import Points
from runner.crashtest._stage import Late, Played, Stage
from runner.crashtest._threads import Threads
from runner.crashtest._troubles import Trouble

Without = Literal["keys", "lookups"]
Again = Callable[[runner.Reply], runner.Reply]

_COME_AGAIN: Final = 1.0
_OVERDUE: Final = 1.5


@dataclass(frozen=True)
class Cast:
    """Who plays in one life: on which stage, through which points, with which trouble; made in the life's own loop."""

    stage: Stage
    points: Points
    threads: Threads
    trouble: Trouble | None = None
    without: Collection[Without] = ()
    again: Again | None = None

    def agent(self) -> runner.Agent:
        """The user's agent, made anew for this life, with every seam a point."""
        agent = self.stage.subject.agent(self.stage.world)
        return agent.replace(model=Speaking(self, agent.model), tools=[self.tool(tool) for tool in agent.tools])

    def tool(self, tool: runner.Tool) -> runner.Tool:
        """One tool, as declared or with less."""
        in_thread = not tool.is_async and tool.effect != "reads"
        trouble = self.trouble
        if trouble is not None and trouble.does == ("thread",) and trouble.tool == tool.name:
            played = tool.around(lambda body: functools.partial(self.in_its_thread, tool, body))
        else:
            played = tool.around(lambda body: _async(self.body, tool, body, in_thread))
        if "keys" in self.without and tool.effect == "keyed":
            played.effect, played.remembers = "once", None
        find = None if "lookups" in self.without else tool.find
        played.find = None if find is None else _async(self.look, find)
        return played

    async def body(
        self,
        tool: runner.Tool,
        body: Callable[..., object],
        in_thread: bool,  # noqa: FBT001 (bound by position, so that no argument of the user's can have its name)
        /,
        **given: object,
    ) -> object:
        """A tool's body: a point before, at every moment it waits, and after."""
        call = runner.current_call()
        what = f"tool {tool.name} {call.id}"
        self.points.at(f"{what}, before")
        inside = functools.partial(self.points.at, f"{what}, inside")
        if tool.effect == "reads":
            value = await stepped(functools.partial(body, **given), inside)
        else:
            self._note(tool, call, in_thread=in_thread)
            value = await self._acts(call, functools.partial(body, **given), inside, what)
        self.points.at(f"{what}, after")
        return value

    def _note(self, tool: runner.Tool, call: runner.Call, *, in_thread: bool) -> None:
        asks = tool.find is not None and "lookups" not in self.without
        effect = "once" if "keys" in self.without and tool.effect == "keyed" else tool.effect
        lands = tool.lands_within
        self.stage.attempts.append(Played(call.id, tool.name, call.n, effect, asks, lands, in_thread))

    async def _acts(
        self, call: runner.Call, body: Callable[[], object], inside: Callable[[], None], what: str
    ) -> object:
        does = self._does(call)
        if does == "late":
            return await self._sends(call, body, what)
        if does == "refuses":
            raise runner.ToolFailed("connection refused", retry_after=_COME_AGAIN)
        if does == "no":
            raise runner.ToolFailed("the service says no")
        if does == "nothing":
            raise runner.Unknown("the connection broke before a reply came")
        value = await self.stage.act(call.id, lambda: stepped(body, inside))
        if does == "acts":
            self.points.at(f"{what}, replying")
            raise runner.Unknown("the reply was lost")
        return value

    def _does(self, call: runner.Call) -> str:
        """What this attempt meets; those of earlier lives count."""
        trouble = self.trouble
        if trouble is None or call.id != trouble.call or call.n > len(trouble.does):
            return ""
        return trouble.does[call.n - 1]

    async def _sends(self, call: runner.Call, body: Callable[[], object], what: str) -> object:
        """Send the request and hear nothing, until the timeout or the end of this life."""
        assert self.trouble is not None
        context = contextvars.copy_context()
        late = Late(lambda: _within(context, self.stage.act(call.id, lambda: stepped(body))), self.trouble.lands)
        self.stage.late.append(late)
        try:
            self.points.at(f"{what}, on its way")
            return await asyncio.get_running_loop().create_future()  # nobody ever answers
        finally:
            late.due = self.stage.time.now + late.within
            if not self.points.dead:
                awaited(late)

    def in_its_thread(self, tool: runner.Tool, body: Callable[..., object], /, **given: object) -> object:
        """A sync body that acts after its timeout, in the thread that the runner gave it."""
        call = runner.current_call()
        what = f"tool {tool.name} {call.id}"
        self.points.at(f"{what}, before")
        self._note(tool, call, in_thread=True)
        assert self.trouble is not None
        is_late = (call.id, call.n) == (self.trouble.call, 1)
        with self.threads.acting(tool.timeout * _OVERDUE if is_late else 0.0):
            self.points.alive()
            value = self.stage.values[call.id] = body(**given)
            self.stage.acted[call.id] += 1  # counting what happened is for the loop's thread, where the world was made
            self.points.at(f"{what}, after")
        return value

    async def look(self, find: Callable[[runner.Call], object], call: runner.Call, /) -> object:
        """A lookup: a point before, at every moment it waits, and after. While the service's is down it raises."""
        what = f"lookup {call.tool} {call.id}"
        self.points.at(f"{what}, before")
        if self.trouble is not None and self.trouble.call == call.id:
            self.stage.looked += 1
            if self.stage.looked <= self.trouble.down:
                raise ConnectionError("the lookup is down")
        found = await stepped(lambda: find(call), functools.partial(self.points.at, f"{what}, inside"))
        self.points.at(f"{what}, after")
        return found


class Speaking:
    """The user's model, with a point before, inside and after each ask."""

    def __init__(self, cast: Cast, model: runner.Model) -> None:
        """Stand before a model."""
        self.name = model.name
        self._cast, self._model = cast, model

    def bound(self, request: runner.Request) -> runner.Bound:
        """The model's own."""
        return self._model.bound(request)

    async def ask(self, request: runner.Request) -> runner.Reply:
        """The model's reply; asked again for what it has answered before, it may say something else."""
        stage, at = self._cast.stage, self._cast.points.at
        what = f"model {request.purpose} {request.turn}"
        at(f"{what}, before")
        if request.purpose == "turn" and request.turn <= stage.saved:
            stage.problems.append(f"turn {request.turn} was asked for again, and its reply was on the disk")
        reply = cast(
            "runner.Reply",
            await stepped(lambda: self._model.ask(request), functools.partial(at, f"{what}, inside")),
        )
        stage.heard[request.purpose, request.turn] += 1
        if stage.heard[request.purpose, request.turn] > 1 and self._cast.again is not None:
            reply = self._cast.again(reply)
        at(f"{what}, after")
        return reply


def awaited(late: Late) -> None:
    """Have an effect that is on its way land in the running loop when it is due."""
    loop = asyncio.get_running_loop()

    def land() -> None:
        if not late.landed:
            late.landed = True
            landing.append(loop.create_task(_landed(late)))

    landing: list[asyncio.Task[None]] = []  # a loop alone would let go of it
    loop.call_at(max(loop.time(), late.due or 0.0), land)


async def _landed(late: Late) -> None:
    try:
        await late.act()
    except Exception as error:  # noqa: BLE001 (the client is gone; what went wrong at the service nobody hears)
        late.error = error


async def _within(context: contextvars.Context, body: Coroutine[Any, Any, object]) -> object:
    """A coroutine in the context of the call that it belongs to."""
    return await asyncio.get_running_loop().create_task(body, context=context)


def _async(function: Callable[..., Awaitable[object]], *bound: object) -> Callable[..., Awaitable[object]]:
    """A coroutine function, which a partial of one is not everywhere."""

    async def played(*arguments: object, **given: object) -> object:
        return await function(*bound, *arguments, **given)

    return played


def _nothing() -> None:
    """No point: whoever runs this is not the process."""


async def stepped(body: Callable[[], object], passed: Callable[[], None] = _nothing) -> object:
    """What `body` comes to, awaited if need be; `passed` is called at every moment that it waits."""
    value = body()
    if inspect.iscoroutine(value):
        return await _steps(value, passed)
    return await value if inspect.isawaitable(value) else value


@types.coroutine
def _steps(body: Coroutine[Any, Any, object], passed: Callable[[], None]) -> Generator[Any, Any, object]:
    step: Callable[[], Any] = functools.partial(body.send, None)
    while True:
        try:
            waits_for = step()
        except StopIteration as end:
            return end.value
        try:
            passed()
            got = yield waits_for
            step = functools.partial(body.send, got)
        except BaseException as error:  # noqa: BLE001 (whatever it is, it belongs to the body that waits)
            step = functools.partial(body.throw, error)
