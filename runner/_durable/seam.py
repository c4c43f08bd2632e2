"""The seam between a program with a loop of its own and the run that makes it durable.

The program calls; nothing happens that it did not ask for. When it runs again from the top, saved replies and recorded
results are handed back, and what is not in the log yet happens live: by the same `decide`, gates, ladder and saves as
in any run, of which the program's demands only say what is due. A result is durable before the program sees it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from replay import State
from replay.events import QuestionAnswered, ResultRecorded
from replay.messages import CostBound, Reply, ToolCall
from replay.values import Digests
from runner._agent import json_text, sanitize
from runner._agent.tools import Tool
from runner._durable import branches
from runner._durable.cursor import Chain, Cursor, Turn, failure, ordered
from runner._durable.demand import ControlSignal, Demand
from runner._durable.pump import PASSES, Pump, wait_for_others
from runner._durable.steps import Steps
from runner._durable.tools import Arguments, Body, Tools, changed, counts, edit_of
from runner._engine.opening import Opened
from runner._policy.demands import NOT_RUN, Ask
from runner._runs.questions import OnQuestion
from runner.errors import BadAgent, BadTool, ToolFailed

T = TypeVar("T")
HERE: contextvars.ContextVar[Durable | None] = contextvars.ContextVar("refold_durable", default=None)
LATE = PASSES + 50
"""How often others may come to what is recorded before the program counts as gone another way."""


def current() -> Durable | None:
    """The run of the program that this code belongs to, or None."""
    return HERE.get()


class Durable:
    """A run that a program's own loop drives: given to the program by `durable` and `durable_main`.

    Attributes:
        answer: What the run comes to, for the program to set.
        keep_open: For an adapter: the end of the block is no end of the run unless there is an answer.
    """

    def __init__(
        self, program: Any, state: State, opened: Opened | None, cursor: Cursor, on_question: OnQuestion | None = None
    ) -> None:
        self.answer: str | None = None
        self.keep_open = False
        self._agents: list[object] = []
        self._cursor, self._chains = cursor, dict[str, Chain]()
        self._order, self._adopting = asyncio.Lock(), asyncio.Lock()
        self.loop, self.pump = asyncio.get_running_loop(), Pump(state, opened, cursor, on_question)
        self._tools, self._steps = Tools(program, self.pump), Steps(self.pump, cursor)

    @property
    def state(self) -> State:
        """The run's state."""
        return self.pump.state

    @property
    def run(self) -> str:
        """The run's id."""
        return self.state.run

    @property
    def resources(self) -> Any:
        """What the program's `resources` gave."""
        return self.pump.opened.life.executor.resources if self.pump.opened is not None else None

    # What a program, or a framework's adapter, calls.

    async def ask(
        self,
        digests: Digests,
        bound: CostBound,
        body: Callable[[], object],
        *,
        tools: Sequence[Tool] = (),
        answers: Mapping[str, str] = {},
    ) -> Reply:
        """The next reply: the saved one, or what `body` gives now, saved before anybody sees it.

        Args:
            digests: Of the parts of the request. That of its messages says whether it is the recorded one.
            bound: The most it can cost.
            body: Gives a `Reply`; it is called once if at all.
            tools: Those that the model may call.
            answers: The framework's own words for calls of the last reply that it did not run, by the provider's id.

        Raises:
            ModelError, Exception: The model failed; what `body` raised, or what is recorded of it.
        """
        branches.come_to(digests.messages)
        self.knows(tools)
        turn = await self._recorded(digests.messages, "a request to the model")
        if turn is None:
            async with self._order:
                return cast("Reply", await self.pump.next(Ask(digests, bound), Demand(body), answers))
        if turn.failed is not None:
            raise failure(turn.failed)
        return cast("Reply", turn.reply)  # a request comes to one of the two

    async def adopt(self, reply: Reply) -> None:
        """Take over calls that no reply of this run ordered so: neither a turn nor spend. Once, whoever asks for it.

        They come from before this run, or stand for those of the current reply with the same ids, which do not run.
        """
        async with self._adopting:
            if not self._cursor.reach(ordered(reply.calls), {call.provider_id for call in reply.calls}):
                await self._make(reply.calls)

    async def call(self, provider_id: str, name: str, body: Body, arguments: Arguments = None) -> ResultRecorded:
        """What a call of the current reply comes to: what is recorded, or what the ladder and `body` come to now.

        What `body` raises is not raised again: the result's `how` and `raw` say what became of the call. `arguments`
        are those that the framework runs it with: the log says if they are others than the reply's (or see `edits`).
        """
        turn, call = self._find(provider_id, name)
        return await self._result(turn, call, body, arguments)

    async def approve(self, provider_id: str, name: str) -> QuestionAnswered:
        """A person's answer about a call of the current reply that the framework holds back."""
        _, call = self._find(provider_id, name)
        asked = (q for q in self.state.questions.values() if q.call == call.id and q.kind == "approve")
        said = [question.answer for question in asked if question.answer is not None]
        return said[-1] if said else cast("QuestionAnswered", await self.pump.approval(call.id))

    async def step(self, name: str, body: Callable[[], object]) -> Any:
        """What `body` computes, once: time, randomness, what a server lists. It must change nothing.

        Args:
            name: The n-th step of a name is handed back as the n-th of it, also one that failed. Tasks that run side by
                side are told apart by the first thing that each does, and count for themselves: that needs a name, a
                call or a request of its own.
            body: Gives a value that JSON holds.

        Raises:
            StepFailed, Exception: The body raised, now or when it ran: an error of Python's own as such a one, any
                other as the nearest of Python's own that it is a kind of, or as `StepFailed`.
            BadAgent: The name is no text, or the value none that JSON holds.
            NotStorable: The value takes more than a line holds, 16 MiB. Its body has run, and runs again.
        """
        return await self._steps.take(name, body)

    async def act(self, tool: str | Tool, arguments: Mapping[str, Any] | None = None, body: Body | None = None) -> str:
        """The result of a call that the program itself orders, as text.

        Args:
            tool: A declared tool, or its name.
            arguments: Its arguments, as JSON values.
            body: What runs instead of the tool's own function; it is given the `Call`.

        Raises:
            ToolFailed: The call did not happen: it failed, was refused, or its arguments do not fit.
            BadTool: There is no such tool, and no body.
        """
        if isinstance(tool, Tool):
            self.knows([tool])
        name = tool.name if isinstance(tool, Tool) else tool
        if body is None and self.program.tool(name) is None:
            raise BadTool(name, "the program declares no such tool, and the call has no body")
        try:
            written = json.dumps(dict(arguments or {}), ensure_ascii=False, allow_nan=False)
            written = json_text.without_surrogates(written)
        except (TypeError, ValueError) as error:
            raise BadTool(name, f"its arguments are no JSON: {error}") from error
        branches.come_to(name, written)
        turn = await self._make((ToolCall(tool=name, arguments=written),), body, demanded=True)
        result = await self._result(turn, turn.calls[0], body)
        if not counts(result):
            raise ToolFailed(result.text)
        return result.text

    def remembered(self) -> None:
        """Say that the program goes on from what its framework remembers: nothing that is recorded is missed.

        What it asks for again is handed back all the same.
        """
        self._cursor.pass_over()

    def knows(self, tools: Iterable[Tool]) -> None:
        """Learn tools that a framework names; those of a request are learned by `ask`."""
        self._tools.learn(tools)

    def orders(self, *calls: tuple[str, str]) -> bool:
        """Whether one reply of this run from here on orders all of these calls, by the provider's ids and the tools."""
        return self._cursor.orders(calls)

    def hears(self, agent: object, *, asks: bool = False) -> None:
        """Note which of several agents asks, or calls a tool.

        Refused is a call of one after which another asked. They go side by side, and a reply's calls end with the next
        request.
        """
        if asks:
            self._agents = [*(one for one in self._agents if one != agent), agent]
        elif agent in self._agents[:-1]:
            self.pump.refuse("agents that call tools go side by side in one run: give each a run of its own")

    def edited(self, call: str) -> bool:
        """Whether a person gave this call other arguments: else it runs with those that its framework has for it."""
        return edit_of(self.state, call) is not None

    def chain(self, parts: Sequence[Any], dump: Callable[[Any], bytes], of: str = "messages") -> str:
        """The digest of a conversation, or of tools; `dump` is called once for each part, known by its identity."""
        return self._chains.setdefault(of, Chain()).digest(parts, dump)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What a coroutine of this run comes to, for sync code in a thread. Raises `BadAgent` in the run's own loop."""
        if asyncio._get_running_loop() is self.loop:  # noqa: SLF001 (get_running_loop raises where there is none)
            coroutine.close()
            raise BadAgent("sync code would block the run's loop: call it by `await asyncio.to_thread(...)`")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    # How it is done.

    @property
    def program(self) -> Any:
        """The program, with the tools that it has come up with."""
        return self._tools.program

    async def _recorded(self, what: Any, words: str) -> Turn | None:
        """The recorded turn like this, or None when the log ends here and it is new."""
        self.pump.check()
        left, waits = self._cursor.left, 0
        while waits < LATE:
            turn = self._cursor.take(what)
            await wait_for_others(waits)
            if turn is not None or self._cursor.left is None:
                return turn
            if waits == PASSES and isinstance(what, str) and self._cursor.asked in self._chains.get("messages", ()):
                self._cursor.pass_over()
                return None
            left, waits = self._cursor.left, waits + 1 if self._cursor.left is left else 0
        return self.pump.diverge(self._cursor.left, f"the program makes {words} that the log does not hold", str(what))

    async def _make(self, calls: Sequence[ToolCall], body: Body | None = None, *, demanded: bool = False) -> Turn:
        turn = await self._recorded(ordered(calls), f"a call of {', '.join(call.tool for call in calls)}")
        if turn is None:
            async with self._order:
                named = tuple(replace(call, id=f"a{self.state.made + 1}.{n}") for n, call in enumerate(calls))
                wanted = {call.id: self._tools.demand(call.tool, body) for call in named} if demanded else {}
                await self.pump.next(named, Demand(None), {}, wanted)
                turn = self._cursor.turns[-1]
        turn.served.update(call.id for call in turn.calls if not call.provider_id)
        return turn

    def _find(self, provider_id: str, name: str) -> tuple[Turn, ToolCall]:
        self.pump.check()
        found = self._cursor.find(provider_id, name)
        if found is not None:
            return found
        last = self._cursor.turns[-1] if self._cursor.turns else None
        return self.pump.diverge(last, f"no reply from there on orders call {provider_id} of {name}", name)

    async def _result(self, turn: Turn, call: ToolCall, body: Body | None, given: Arguments = None) -> ResultRecorded:
        self.pump.check()
        if (known := turn.results.get(call.id)) is not None:
            if known.text == NOT_RUN:
                self.pump.refuse("an agent's call and an act go side by side in one run: give each a run of its own")
            return known
        new = changed(self.pump, self.program.tool(call.tool), call, given)
        self.pump.executed += 1
        return cast("ResultRecorded", await self.pump.result(call.id, self._tools.demand(call.tool, body), new))

    async def end(self, error: BaseException | None = None) -> None:
        """End the block: write the answer, or raise what ended it. A signal counts, whatever became of it."""
        signal = self.pump.signal
        if error is None and signal is None and not (self.keep_open and self.answer is None):
            try:
                async with self._order:
                    left = self._cursor.left
                    if left is not None and not self.keep_open:
                        self.pump.diverge(left, "the program ends", "the end")
                    answer: object = self.answer if self.answer is not None else self.state.answer or ""
                    text = answer if isinstance(answer, str) else json.dumps(answer, default=str)
                    if not self._cursor.done:
                        await self.pump.next(sanitize.clean(text), Demand(None), {})
            except ControlSignal as raised:
                signal = raised
        elif isinstance(error, Exception) and signal is None:
            with contextlib.suppress(ControlSignal):  # it is latched
                await self._steps.again(error)
        signal = await self.pump.leave(error) or signal
        if signal is not None and not isinstance(error, asyncio.CancelledError):
            raise signal.error from (None if isinstance(error, ControlSignal) else error)
        if error is not None:
            raise error
