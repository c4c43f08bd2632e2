"""A pytest plugin: every agent that LangChain's own tests make runs on a log, `pytest -p on_refold.langchain`.

With REFOLD_REPLAY=1 each run that ended is run again on its log: nothing may be executed, and what comes back is the
same. The tests themselves are not judged then: their own counters count twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import blockbuster  # type: ignore[import-not-found]
import langchain.agents
from langchain.agents import factory
from langchain_core.messages import BaseMessage

import runner
from runner import langchain as ours
from runner._durable.seam import HERE
from runner.adapters import Durable, current

from .counted import COUNTS, REPLAY, RUNS, Reads

blockbuster.blockbuster_ctx = lambda: contextlib.nullcontext(None)
"""Off: looking into a run's inbox is a short call of the system in the loop, by design."""
_loop = asyncio.new_event_loop()
_make = factory.create_agent


class _Runs:
    """One agent's runs: one for each `invoke`, and the same again when it goes on after an interrupt."""

    def __init__(self, *, remembers: bool) -> None:
        self.remembers = remembers
        self._going: dict[str, str] = {}

    def name(self, config: Any) -> tuple[str, str]:
        thread = str((config or {}).get("configurable", {}).get("thread_id", "")) if self.remembers else ""
        return thread, self._going.get(thread) or uuid.uuid4().hex

    def ended(self, thread: str, run: str, *, whole: bool) -> None:
        """Note whether the run is over: one that waits for the thread's next `invoke` is carried on by it."""
        if whole:
            self._going.pop(thread, None)
        elif self.remembers:
            self._going[thread] = run


def _durable(run: str) -> Any:
    return runner.durable("a test", runs=RUNS.name, run=run, name="tested", framework="langchain")


@contextlib.contextmanager
def _from_a_thread(run: str) -> Iterator[Durable]:
    """The block for sync code: the run's loop is the plugin's own thread."""
    block = _durable(run)
    here = asyncio.run_coroutine_threadsafe(block.__aenter__(), _loop).result(60)
    before = HERE.get()
    HERE.set(here)
    error: BaseException | None = None
    try:
        yield here
    except BaseException as raised:
        error = raised
        raise
    finally:
        HERE.set(before)
        given = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        try:
            asyncio.run_coroutine_threadsafe(block.__aexit__(*given), _loop).result(60)
        except BaseException as raised:
            if raised is not error:
                raise


def _said(events: list[Any]) -> list[Any]:
    """What must be equal of a stream, whose events are full of drawn ids: the last state's messages, or all texts."""

    def messages(value: Any) -> list[Any]:
        if isinstance(value, BaseMessage):
            return [value]
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return [message for member in inner for message in messages(member)]

    last = next((found for event in reversed(events) if len(found := messages(event)) > 1), None)
    return _plain(last) if last is not None else ["".join(str(m.text) for m in messages(events))]


def _plain(value: Any) -> Any:
    """What must be equal: everything but the ids that LangGraph draws."""
    if isinstance(value, BaseMessage):
        return value.type, value.content, getattr(value, "tool_calls", None)
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, list | tuple) else value


def _interrupted(out: Any) -> bool:
    return isinstance(out, dict) and "__interrupt__" in out


def _watched(graph: Any, runs: _Runs) -> None:  # noqa: C901, PLR0915 (each entry of a graph)
    invoke, ainvoke, stream, astream = graph.invoke, graph.ainvoke, graph.stream, graph.astream

    def judge(first: Any, again: Any, here: Durable) -> None:
        equal = _said if isinstance(first, list) else _plain
        COUNTS.judge(equal(first), equal(again), here.pump.executed)

    def in_thread(made: Any, args: Any, named: Any) -> Any:
        if asyncio._get_running_loop() is not None:  # noqa: SLF001 (a loop must not be blocked: nothing durable there)
            COUNTS.apart += 1
            return made(*args, **named)
        thread, run = runs.name(named.get("config") or (args[1] if len(args) > 1 else None))
        whole = False
        try:
            with _from_a_thread(run):
                out = made(*args, **named)
            whole = not _interrupted(out)
        finally:
            runs.ended(thread, run, whole=whole)
        COUNTS.runs += 1
        if REPLAY and not runs.remembers:
            with COUNTS.replaying(), _from_a_thread(run) as here:
                judge(out, made(*args, **named), here)
        return out

    async def in_loop(made: Any, args: Any, named: Any) -> Any:
        thread, run = runs.name(named.get("config") or (args[1] if len(args) > 1 else None))
        whole = False
        try:
            async with _durable(run):
                out = await made(*args, **named)
            whole = not _interrupted(out)
        finally:
            runs.ended(thread, run, whole=whole)
        COUNTS.runs += 1
        if REPLAY and not runs.remembers:
            with COUNTS.replaying():
                async with _durable(run) as here:
                    again = await made(*args, **named)
                judge(out, again, here)
        return out

    def all_of(seen: list[Any], *args: Any, **named: Any) -> list[Any]:
        del seen[:]
        for one in stream(*args, **named):
            seen.append(one)  # noqa: PERF402 (what came before an error is wanted)
        return [*seen]

    async def all_of_async(seen: list[Any], *args: Any, **named: Any) -> list[Any]:
        del seen[:]
        async for one in astream(*args, **named):
            seen.append(one)  # noqa: PERF401 (what came before an error is wanted)
        return [*seen]

    @functools.wraps(invoke)
    def new_invoke(*args: Any, **named: Any) -> Any:
        return invoke(*args, **named) if current() else in_thread(invoke, args, named)

    @functools.wraps(ainvoke)
    async def new_ainvoke(*args: Any, **named: Any) -> Any:
        return await ainvoke(*args, **named) if current() else await in_loop(ainvoke, args, named)

    @functools.wraps(stream)
    def new_stream(*args: Any, **named: Any) -> Iterator[Any]:
        if current():
            yield from stream(*args, **named)
            return
        seen: list[Any] = []
        error: BaseException | None = None
        try:
            in_thread(functools.partial(all_of, seen), args, named)
        except BaseException as raised:  # noqa: BLE001 (raised after what came before it)
            error = raised
        yield from seen
        if error is not None:
            raise error

    @functools.wraps(astream)
    async def new_astream(*args: Any, **named: Any) -> AsyncIterator[Any]:
        if current():
            async for one in astream(*args, **named):
                yield one
            return
        seen: list[Any] = []
        error: BaseException | None = None
        try:
            await in_loop(functools.partial(all_of_async, seen), args, named)
        except BaseException as raised:  # noqa: BLE001 (raised after what came before it)
            error = raised
        for one in seen:
            yield one
        if error is not None:
            raise error

    graph.invoke, graph.ainvoke, graph.stream, graph.astream = new_invoke, new_ainvoke, new_stream, new_astream


@functools.wraps(_make)
def _create_agent(model: Any, tools: Any = None, *, middleware: Any = (), **named: Any) -> Any:
    graph = _make(model, tools, middleware=ours.middleware(*middleware, tools=Reads()), **named)
    _watched(graph, _Runs(remembers=named.get("checkpointer") is not None))
    return graph


threading.Thread(target=_loop.run_forever, daemon=True).start()
langchain.agents.create_agent = factory.create_agent = _create_agent
