"""One life of a run that is open: from its opening line until the run is done, stopped, or left to a person.

So are its child runs, in the process and the slot of their parent, and as long as that is carried on.
"""

import asyncio
import contextlib
import functools
import inspect
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import eventlog
import replay
from eventlog import RunExists
from replay import Event, State
from replay.events import ChildStarted, ResultRecorded
from replay.values import ParentCall
from runner import _logging
from runner._agent import sanitize
from runner._agent.agent import AnyAgent
from runner._engine import opening, save_pool, signals
from runner._engine.flight import Outcomes
from runner._engine.loop import Life
from runner._engine.opening import ChildOf, Opened
from runner._policy import resume_check
from runner._policy.children import agent_of
from runner._runs import load, say
from runner._runs.children import news, rests
from runner._runs.questions import Answer, Finished, OnQuestion, Outcome, Paused, Waiting, events, finished
from runner.errors import STOPS, AlreadyAnswered, BadAgent, BadRule, Stopped, UnusableAnswer

T = TypeVar("T")
_BUSY, _LOOKS = 0.05, 600
"""Seconds between looks at a child that somebody opened to say something to it, and how many looks there are."""
_ANEW = 5
"""Questions of a kind about one call that a hook is asked: one that answers the same each time would go on for ever."""


def entered(agent: AnyAgent) -> AbstractAsyncContextManager[Any]:
    """What an agent's runs read as `call.resources`, for as long as this is entered."""
    return agent.resources() if agent.resources is not None else contextlib.nullcontext()


async def run_session(
    opened: Opened, on_question: OnQuestion | None, resources: Any, rest: float = math.inf
) -> Outcome[Any]:
    """Carry a run on in this process, where a signal drains it, and say what it came to."""
    life = opened.life
    life.executor.resources, life.rest = resources, rest
    try:
        lives = save_pool.counted(1 + life.store.knows_due)
        with await save_pool.beside(life.store.enter, kept=True), signals.drains(life.drain), lives:
            state, looked = await carry(opened, on_question)
    finally:
        await save_pool.beside(life.end)
    return ended(life, state, looked=looked)


async def carry(opened: Opened, on_question: OnQuestion | None) -> tuple[State, bool]:
    """Run one life to its end: its state, and whether it only looked at a pause or a wait, which writes nothing.

    A program with a loop of its own carries its run by itself. Whoever calls this ends the life.
    """
    own = opened.life.agent.carried(opened, on_question)
    if own is not None:
        state, looked = await own
        return state, looked
    state, looked = await begin(opened, on_question)
    return (state, True) if looked else (await drive(opened.life, state, on_question), False)


async def begin(opened: Opened, on_question: OnQuestion | None) -> tuple[State, bool]:
    """Begin a life: its state once nothing is due, and whether it only looked. A pause is put to the hook first."""
    life, state, resumed = opened.life, opened.state, opened.resumed
    life.executor.child = functools.partial(carry_child, life)
    if not resumed:
        show_beginning(opened)
    if resumed and _rests(life, state):
        return state, True
    if resumed and _waits(life, state):
        state = await _noted(life, await _ask(life, state, on_question))
        if _waits(life, state):
            return state, True
    if not resumed:
        return await life.go_on(state), False
    (host, pid), back, lost = life.store.host(), life.clock.back, life.log.lease_lost
    first = resume_check.resumed(life.agent, state, host=host, pid=pid, clock_back=back, lease_lost=lost)
    return await life.run(state, first), False


def show_beginning(opened: Opened) -> None:
    """Show the watcher the line that began the run."""
    first: list[Any] = [replay.decode(opened.life.log.lines[-1].events[0])]
    opened.life.show(opened.state, first)


def ended(life: Life, state: State, *, looked: bool) -> Outcome[Any]:
    """What a life came to that has ended: an end that was asked for meanwhile is a part of it."""
    after = life.after
    if after is not None and after.stopped is not None and after.stopped != state.stopped:
        return outcome(life.agent, after)
    return outcome(life.agent, state, looked=looked)


def outcome(agent: AnyAgent, state: State, *, looked: bool = False) -> Outcome[Any]:
    """What a run has come to. Raises the stop that ended it, unless its pause was only looked at."""
    if state.stopped is not None and not looked:
        raise STOPS[state.stopped.reason](state.run, state.stopped.detail)
    if state.phase == "paused":
        return Paused(state.waiting, state.run, state)
    if state.wait is not None:
        return Waiting(state.due or state.wait.until, state.run, state)
    return finished(agent, state)


async def drive(life: Life, state: State, on_question: OnQuestion | None) -> State:
    """Sleep out waits and put open questions, until the run is done, stopped, or left to a person."""
    while state.stopped is None and state.phase != "done":
        assert not state.busy  # whatever perform was given has ended, or the run was stopped
        state, left = await rest(life, state, on_question)
        if left:
            break
        state = await life.go_on(state)
    return state


async def rest(life: Life, state: State, on_question: OnQuestion | None) -> tuple[State, bool]:
    """Put open questions, or sleep out a wait; whether the run is left to a person or a time after that."""
    try:
        state = await _noted(life, state)
        if _waits(life, state):
            state = await _noted(life, await _ask(life, state, on_question))
            return state, _waits(life, state) and not (life.mailbox.held or life.mailbox.has_new())
        if state.wait is not None:
            if _rests(life, state) and not life.mailbox.has_new():
                return state, True
            await _unless_drained(life, life.clock.until(state.due or state.wait.until))
    except asyncio.CancelledError as cancelled:
        await life.go_on(life.saved or state, Outcomes(error=cancelled))
        raise
    return state, False


def _waits(life: Life, state: State) -> bool:
    """Whether the run pauses, with nothing new to go on with."""
    return resume_check.waits(life.agent, state, life.clock.now())


async def _noted(life: Life, state: State) -> State:
    """Write how children rest by now, for somebody may have answered them."""
    said = news(state, functools.partial(load.read, life.store))
    return await life.answer(state, said) if said else state


def _rests(life: Life, state: State) -> bool:
    """Whether the run waits for longer than its process is to keep it."""
    if state.stopped is not None or state.wait is None:
        return False
    return life.clock.left(state.due or state.wait.until) > life.rest  # a deadline may come before


async def _ask(life: Life, state: State, on_question: OnQuestion | None) -> State:
    """Put every open question to the hook, until the run is asked to stop; the state with the answers it gave."""
    for question in state.waiting if on_question is not None else ():
        assert on_question is not None
        own = state.questions.get(question.id)
        if own is not None and own.answer is not None:  # it came by mail while another one was asked
            continue
        number = question.id.rpartition("-")[2]
        if number.isdecimal() and int(number) > _ANEW:
            continue
        given = on_question(question)
        answer = await _unless_drained(life, given) if inspect.isawaitable(given) else given
        if not isinstance(answer, Answer | None):
            raise BadAgent(f"on_question gave {type(answer).__name__} for {question.id}, not a runner.Answer or None")
        state = await life.read_mail(state)
        if answer is not None and (own is None or state.questions[question.id].answer is None):
            try:
                if own is None:
                    said_to = functools.partial(say.answer, life.store, state.run, question, answer, life.clock.clock)
                    await save_pool.saved(said_to)
                    continue
                said = events(state, question, answer)
            except (UnusableAnswer, BadRule, AlreadyAnswered) as error:
                _logging.logger(run=state.run).warning("a question stays open", error=str(error))
                continue
            state = await life.answer(state, said)
        if life.drain.asked or life.mailbox.held:
            break
    return state


async def _unless_drained(life: Life, awaited: Awaitable[T]) -> T | None:
    """What is awaited (an answer, a moment of the log's time), or None once the run is asked to stop or has mail."""
    waiting = asyncio.ensure_future(awaited)
    waiting.add_done_callback(life.bell.wake)
    try:
        with life.mailbox.noticed(life.bell):
            await asyncio.sleep(0)  # what needs no time is done then
            while not (waiting.done() or life.drain.asked or life.bell.rung):
                await life.bell.heard()
        return waiting.result() if waiting.done() else None
    finally:
        life.bell.rung = False
        waiting.cancel()


async def carry_child(parent: Life, state: State, started: ChildStarted) -> Outcomes:
    """Carry a child run on until it rests, and say what it came to.

    It is opened by its parent's life. It exists once: one that was made before is opened, also when it ended since. It
    drains when its parent does, and its parent's lock is kept until its log is closed.
    """
    try:
        agent = agent_of(parent.agent, state, started.call).replace(limits=started.limits)
        async with entered(agent) as resources:
            child = await _carried(parent, agent, resources, state, started)
    except Exception as error:  # noqa: BLE001 (the outcomes of what runs beside it are saved first)
        return Outcomes(error=error)
    said: list[Event] = [rests(started.call, child)]
    if child.phase == "done":
        stored = sanitize.result(child.answer or "", ())
        said.append(ResultRecorded(call=started.call, how="ran", **stored.fields()))
    return Outcomes(said)


async def _carried(parent: Life, agent: AnyAgent, resources: Any, state: State, started: ChildStarted) -> State:
    """The state of a child after it was carried on."""
    try:
        opened = await _opened(functools.partial(_open, parent, agent, state, started))
    except Stopped:  # for good, or by somebody who was faster
        return load.read(parent.store, started.run)
    if isinstance(opened, Finished):
        return opened.state
    life = opened.life
    life.clock.back |= parent.clock.back  # its own may not show it
    parent.inflight.begin()
    life.on_closed = parent.inflight.end
    life.executor.resources, life.rest = resources, parent.rest
    parent.drain.tell(life.drain.ask)
    try:
        after, _ = await carry(opened, None)
    except Stopped:  # what stopped it stands, so nothing was written
        after = opened.state
    finally:
        parent.drain.untell(life.drain.ask)
        life.end()
    return life.after or after


async def _opened(opens: Callable[[], Opened | Finished[Any]]) -> Opened | Finished[Any]:
    """The child, as soon as nobody else has it for a moment. Raises `RunLocked` when it is held for long."""
    for _ in range(_LOOKS):
        try:
            return await save_pool.saved(opens)
        except eventlog.RunLocked:
            await asyncio.sleep(_BUSY)
    return await save_pool.saved(opens)


def _open(parent: Life, agent: AnyAgent, state: State, started: ChildStarted) -> Opened | Finished[Any]:
    """Open the child of a call, or make it."""
    store = parent.store
    given: dict[str, Any] = {"store": store, "watch": parent.watch, "clock": parent.clock.shared()}
    given["grace"] = parent.drain.grace
    call = ParentCall(run=state.run, uid=state.uid, call=started.call)
    if store.header(started.run) is not None:
        opened = opening.reopen(started.run, agent, by_parent=True, **given)
        if opened.state.uid != started.uid:
            if isinstance(opened, Opened):
                opened.life.end()
            raise RunExists(started.run, str(store), ("parent",))
        return opened
    _, _, prepared = parent.executor.known(state, started.call)
    values = prepared.values or {}
    child = ChildOf(call, started.uid, state.fork_guard)
    given |= {"run": started.run, "labels": state.labels, "inputs": values.get("inputs"), "child": child}
    return opening.create(agent, values["task"], **given)
