"""Carries a run on as long as its program waits for something, and tells the program what came of it.

The life's own loop does the work. Here is only what the program demands, who waits for it, and what ends it: a pause,
a wait that nobody sleeps out, a stop, an error of the log. That is latched, and reaches the program whatever it does
next.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import replay
from replay import Event, State
from replay.events import (
    AttemptEnded,
    CallsMade,
    ModelAsked,
    ModelFailed,
    PhaseChanged,
    QuestionAnswered,
    ReplySaved,
    ResultRecorded,
    StepRecorded,
)
from runner._agent.agent import AnyAgent
from runner._durable.cursor import Cursor, Turn, failure
from runner._durable.demand import ControlSignal, Demand
from runner._engine import save_pool, session
from runner._engine.flight import Outcomes
from runner._engine.loop import Watch
from runner._engine.opening import Opened
from runner._policy.decide import decide
from runner._policy.demands import Demands
from runner._runs.questions import OnQuestion
from runner.errors import STOPS, BadAgent, Interrupted, NeedsDecision, StillWaiting

PASSES, MOMENT = 100, 0.02
"""How others are waited for: passes of the loop, then seconds, for those that use a thread or read a page."""
BREATH = 3
"""Passes of the loop before a demand is looked at: calls that are demanded in one breath share a line."""


async def wait_for_others(waits: int) -> None:
    """Let others come to what is recorded, or is theirs to do, after so many waits."""
    await asyncio.sleep(0 if waits < PASSES else MOMENT)


class NothingRecorded(Exception):
    """The log ends here, and nothing may happen: it is only compared."""


class Pump:
    """The demands of a program, and the task that meets them.

    `opened` is None for a run that is only looked at, `rehearses`: to compare it, and nothing of the program's runs.
    `looked`: its pause or wait had nothing new.
    """

    def __init__(self, state: State, opened: Opened | None, cursor: Cursor, on_question: OnQuestion | None) -> None:
        self.state, self.opened, self.cursor = state, opened, cursor
        self.signal: ControlSignal | None = None
        self.looked = self.left = self.rehearses = False
        self.executed = 0
        self.asking: Demand | None = None
        self._on_question = on_question
        self._next: tuple[Any, Demand, Mapping[str, str]] | None = None
        self._calls: dict[str, Demand] = {}
        self._approvals: dict[str, Demand] = {}
        self._edits: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._began = False
        if opened is not None:
            opened.life.decide = self._decide
            opened.life.watch = functools.partial(self._saved, opened.life.watch)

    def check(self) -> None:
        """Raise the signal that was raised before."""
        if self.signal is not None:
            raise self.signal

    def diverge(self, recorded: Turn | None, why: str, now: str) -> NoReturn:
        """Say that the program goes another way than the log."""
        seq = recorded.seq if recorded is not None else self.cursor.seq
        was = "nothing more" if recorded is None else str(recorded)
        words = f"{why}, and the history has {was}"
        raise self._latch(replay.Diverged(self.state.run, seq, words, f"- {was}\n+ {now}"))

    def use(self, program: AnyAgent) -> None:
        """From here on the run has this program's tools."""
        if self.opened is not None:
            self.opened.life.agent = self.opened.life.executor.agent = program

    def body_of(self, call: str) -> Callable[..., object] | None:
        """What the program brings for a call; None: its tool's own function."""
        demand = self._calls.get(call)
        return demand.runs if demand is not None else None

    async def next(
        self, what: Any, demand: Demand, words: Mapping[str, str], calls: Mapping[str, Demand] | None = None
    ) -> Any:
        """What comes of the next request, calls or end, after the current reply; `calls` are demanded with it.

        It waits a moment for tasks beside it that are about to demand a call: a program's own call for those of a
        framework's reply too, which end with it.
        """
        self.check()
        for n in range(PASSES + 10):
            left = (one for one in self.state.calls if one.result is None and one.call.id not in self._calls)
            if not any(calls or not one.call.provider_id for one in left):
                break
            await wait_for_others(n)
        for call in self.state.calls:
            if call.in_doubt and call.call.id not in self._calls:
                place = self.cursor.turns[-1]
                self.diverge(place, f"the program passes over call {call.call.id}, which may have happened", "the next")
        self.executed += 1
        self._next = (what, demand, words)
        self._calls.update(calls or {})
        return await self._wait(demand)

    def refuse(self, why: str) -> NoReturn:
        """Say that the program wants what it can't have."""
        raise self._latch(BadAgent(why))

    async def result(self, call: str, demand: Demand, arguments: str | None = None) -> Any:
        """What comes of a call, with other arguments if they are given."""
        if arguments is not None:
            self._edits[call] = arguments
        return await self._wait(self._calls.setdefault(call, demand))

    async def approval(self, call: str) -> Any:
        """A person's answer about a call."""
        return await self._wait(self._approvals.setdefault(call, Demand(None)))

    async def ask_now(self) -> object:
        """Run the body of the request that is due."""
        assert self.asking is not None
        assert self.opened is not None
        run: Any = self.asking.runs
        if self.asking.is_async:
            return await run()
        running = self.opened.life.inflight.thread(run)
        while not running.is_over:
            await running.news()
        return running.result()

    async def begun(self) -> None:
        """Begin the life if nothing was due in it before."""
        if not self._began:
            await self._wait(None)
            self.check()

    async def record(self, step: StepRecorded) -> None:
        """Save what a step came to, also while something is in flight."""
        self.check()
        assert self.opened is not None
        try:
            await save_pool.saved(functools.partial(self.opened.life.record, step))
            await asyncio.sleep(0)  # a cancellation that came meanwhile is raised here
        except asyncio.CancelledError as error:  # later lives have this step, and may go another way than this program
            await self.leave(error)
            raise
        except Exception as error:
            raise self._latch(error) from error

    async def leave(self, error: BaseException | None) -> ControlSignal | None:
        """End what is in flight for a program that is over, and note if it was cancelled: what the program was told."""
        task, cancelled = self._task, isinstance(error, asyncio.CancelledError)
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
        told = self.signal  # before a task that outlives the program is: it begins nothing beside the note
        self._latch(Interrupted(self.state.run, "the run was cancelled" if cancelled else "the program is over"))
        if cancelled and self._began and told is None and self.opened is not None:
            with contextlib.suppress(asyncio.CancelledError):
                self.state = await self.opened.life.go_on(self.state, Outcomes(error=error))
        return told

    async def _wait(self, demand: Demand | None) -> Any:
        """What comes of a demand; without one, until the run rests."""
        self.check()
        if self.opened is None:
            if self.cursor.done:
                self.diverge(None, "the program goes on", "more")
            raise self._latch(NothingRecorded())
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            return await asyncio.shield(self._task if demand is None else demand.future)
        except asyncio.CancelledError:
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait({self._task})
            raise

    async def _run(self) -> None:
        try:
            for _ in range(BREATH):
                await asyncio.sleep(0)
            await self._go_on()
        except asyncio.CancelledError:
            self._latch(Interrupted(self.state.run, "the run was cancelled"))
        except BaseException as error:  # noqa: BLE001 (it reaches the program, and whoever began it)
            self._latch(error)

    async def _go_on(self) -> None:
        assert self.opened is not None
        life = self.opened.life
        if not self._began:
            self._began = True
            self.state, self.looked = await session.begin(self.opened, self._on_question)
            self.left = self.looked
        while self.state.stopped is None and not self.left and self._wanted:
            self.state, self.left = await session.rest(life, self.state, self._on_question)
            if not self.left:
                self.state = await life.go_on(self.state)
        stopped = self.state.stopped
        if stopped is not None and not self.looked:
            self.left = True
            self._latch(STOPS[stopped.reason](self.state.run, stopped.detail))
        elif self.left:
            self._latch(self._why_left())

    def _why_left(self) -> Exception:
        state = self.state
        if state.phase != "paused" and state.wait is not None:
            return StillWaiting(state.run, state.due or state.wait.until)
        return NeedsDecision(state.run, tuple(question.id for question in state.waiting))

    @property
    def _wanted(self) -> bool:
        """Whether the program waits for anything."""
        return any((self._next, self.asking, *self._calls.values(), *self._approvals.values()))

    def _decide(self, agent: AnyAgent, state: State, now: datetime) -> list[Event]:
        what, _, words = self._next or (None, None, {})
        calls = frozenset(call for call, demand in self._calls.items() if not demand.withdrawn)
        return decide(agent, state, now, Demands(what, calls, frozenset(self._approvals), words, self._edits))

    def _saved(self, watch: Watch | None, state: State, events: Sequence[Event]) -> None:
        """Hand over what was saved, then call the watcher of whoever began the run."""
        self.state = state
        for event in events:
            self.cursor.add(event, state.seq, taken=True)
            self._hand_over(event)
        if watch is not None:
            watch(state, events)

    def _hand_over(self, event: Event) -> None:
        match event:
            case ModelAsked() if self._next is not None:
                self.asking, self._next = self._next[1], None
            case ReplySaved() if self.asking is not None:
                self.asking.give(event.reply)
                self.asking = None
            case ModelFailed() if self.asking is not None:
                self.asking.fail(self.asking.error or failure(event))
                self.asking = None
            case CallsMade() | PhaseChanged(phase="done") if self._next is not None:
                self._next[1].give(None)
                self._next = None
            case ResultRecorded() if event.call in self._calls:
                self._calls.pop(event.call).give(event)
            case AttemptEnded(withdrawn=True) if event.call in self._calls:
                self._withdraw(self._calls.pop(event.call))
            case QuestionAnswered() if self.state.questions[event.id].call in self._approvals:
                self._approvals.pop(self.state.questions[event.id].call).give(event)

    def _withdraw(self, demand: Demand) -> None:
        error = demand.error
        if isinstance(error, ControlSignal):  # a run inside this call waits, so this one does
            error = self._latch(error.error)
        demand.fail(error or NothingRecorded())

    def _latch(self, error: BaseException) -> ControlSignal:
        if self.signal is None:
            self.signal = ControlSignal(error)
            waiting = [*self._calls.values(), *self._approvals.values(), self.asking, self._next and self._next[1]]
            for demand in waiting:
                if demand is not None:
                    demand.fail(self.signal)
        return self.signal
