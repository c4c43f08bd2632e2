"""A program with a loop of its own, as the agent of its runs: what a worker, a resume or the command carries on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Literal, cast

import msgspec

import replay
from replay import Diverged, Divergence, State
from replay.messages import CostBound, Reply
from replay.values import Limits
from runner._agent.agent import Agent
from runner._agent.model import Model, Request
from runner._agent.tools import Tool
from runner._durable import branches, seam
from runner._durable.cursor import Cursor
from runner._durable.pump import NothingRecorded
from runner._engine import save_pool
from runner._engine.opening import Opened
from runner._runs.questions import OnQuestion
from runner.errors import BadAgent

Main = Callable[..., Awaitable[object]]


class ProgramModel:
    """The model of a program's run: whatever the program does for a reply. What it may cost comes with each request."""

    name = "program"

    def bound(self, request: Request) -> CostBound:  # noqa: ARG002 (a model's face)
        """Nothing: the demand says what it may cost."""
        return CostBound(dollars=0.0)

    async def ask(self, request: Request) -> Reply:  # noqa: ARG002 (its program knows what it asks)
        """The reply that the program gets."""
        here = seam.current()
        assert here is not None  # the pump runs in the context of its run
        return cast("Reply", await here.pump.ask_now())  # whatever it is, the engine says what is wrong with it


class Program(Agent[Any, Any, str], frozen=True, kw_only=True, dict=True):
    """A program whose loop is its own. `main` runs it from the top; without one only its own process carries it on.

    `framework` is whose loop it is. `learned` are tools that it named later. `instrument` is for tests: it wraps every
    tool that is learned.
    """

    model: Model = msgspec.field(default_factory=ProgramModel)
    main: Main | None = None
    framework: str = "python"
    learned: tuple[Tool, ...] = ()
    instrument: Callable[[Tool], Tool] | None = None

    @functools.cached_property
    def _by_name(self) -> dict[str, Tool[Any, Any]]:
        return {tool.name: tool for tool in (*self.tools, *self.learned)}

    def carried(self, opened: Opened, on_question: OnQuestion | None) -> Awaitable[Any]:
        """Carry a run on by running the program from the top."""
        if self.main is None:
            why = f"runs of {self.name} are carried on by the program that began them: put durable_main on a function"
            raise BadAgent(why)
        return _carry(self.main, opened, on_question)

    def rehearsed(self, lines: Sequence[Any]) -> tuple[Program, Divergence | None]:
        """The program with the tools that it comes up with, and where it leaves this history. Nothing live happens.

        Raises `BadAgent` for one that only the program's own process can run.
        """
        if self.main is None:
            raise BadAgent(f"a run of {self.name} is retraced by running its program: put durable_main on a function")
        with concurrent.futures.ThreadPoolExecutor(1) as thread:  # there may be a loop in this one
            return thread.submit(asyncio.run, _rehearse(self, lines)).result()


def durable_main(
    *,
    name: str,
    tools: Sequence[Tool] = (),
    framework: str = "python",
    inputs: Any = None,
    limits: Limits | None = None,
    approve: Literal["ask", "off"] = "ask",
    answer_within: timedelta | None = None,
    resources: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
) -> Callable[[Main], Program]:
    """Make an async function a program that `run`, `resume`, a `Worker` and the command carry on.

    The function takes `(run, task, inputs)`, or `(task, inputs)` where a framework finds the run by itself. It runs
    again from the top in each life of a run: what it did by its run (`act`, `step`, or a framework's adapter) is handed
    back, everything else must follow from that. What it returns is the answer.

    `tools` are those that it declares, `framework` is whose loop it is, and `inputs` the type of a run's inputs. All
    else is as for `Agent`; `run.resources` gives the resources.

    Raises:
        BadAgent: The function is not async, takes other parameters, or something can't work as given.
    """

    def declare(function: Main) -> Program:
        if not inspect.iscoroutinefunction(function):
            raise BadAgent(f"{getattr(function, '__qualname__', function)} is no async function")
        parameters = list(inspect.signature(function).parameters.values())
        number = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)
        if number not in (2, 3) or number != len(parameters):
            raise BadAgent(f"{function.__qualname__} takes other parameters than (run, task, inputs) or (task, inputs)")

        @functools.wraps(function)
        async def main(*given: object) -> object:
            return await function(*given[-number:])

        options: dict[str, Any] = {"inputs": inputs, "approve": approve, "answer_within": answer_within}
        options |= {"tools": tools, "limits": limits or Limits(), "resources": resources}
        return Program(name=name, main=main, framework=framework, **options)

    return declare


async def _run(run: seam.Durable, main: Main) -> BaseException | None:
    """Run a program from the top; what it raised, if anything."""
    before = seam.HERE.get()
    seam.HERE.set(run)
    try:
        state = run.state
        with branches.entered():
            value: Any = await main(run, state.task, run.program.load_inputs(state.inputs))
        run.answer = "" if value is None else value
    except BaseException as error:  # noqa: BLE001 (a signal, or what the program raised: `end` tells them apart)
        return error
    finally:
        seam.HERE.set(before)
    return None


async def _carry(main: Main, opened: Opened, on_question: OnQuestion | None) -> tuple[State, bool]:
    """Run a program for a run that is open: its state then, and whether it only looked."""
    reading = functools.partial(opened.life.store.read, opened.state.run)
    lines = (await save_pool.saved(reading)).lines if opened.resumed else []
    run = seam.Durable(opened.life.agent, opened.state, opened, Cursor(lines), on_question)
    try:
        await run.end(await _run(run, main))
    except Exception:  # a run that was left waits or is paused: its state says so, whatever the program made of that
        if not run.pump.left:
            raise
    return run.state, run.pump.looked


async def _rehearse(program: Program, lines: Sequence[Any]) -> tuple[Program, Divergence | None]:
    """Run a program against a history, up to the first thing that is not in it."""
    assert program.main is not None
    run = seam.Durable(program, replay.load(lines), None, Cursor(lines))
    run.pump.rehearses, split = True, None
    try:
        await run.end(await _run(run, program.main))
    except NothingRecorded:
        pass
    except Diverged as error:
        at = next((line.at for line in lines if line.seq == error.seq), lines[-1].at)
        split = Divergence(seq=error.seq, at=at, was=(), now=(), why=f"{error.why}\n{error.diff}")
    learned: Program = run.program
    return learned, split
