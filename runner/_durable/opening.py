"""`durable`: the block in which a framework's loop, or plain code, drives a run that it starts or attaches to."""

import contextlib
import functools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

import eventlog
import replay
from replay.values import Limits
from runner._agent.call import CURRENT
from runner._agent.tools import Tool
from runner._clock import Clock
from runner._durable import branches
from runner._durable.cursor import Cursor
from runner._durable.demand import ControlSignal
from runner._durable.program import Program
from runner._durable.seam import HERE, Durable
from runner._engine import opening, signals
from runner._engine.loop import Life, Watch
from runner._engine.opening import GRACE, Opened
from runner._engine.save_pool import counted, off_loop
from runner._runs.questions import Finished, OnQuestion
from runner._service import attach
from runner.errors import Interrupted, NeedsDecision, StillWaiting

RESTS = (NeedsDecision, StillWaiting, Interrupted)
"""What a run inside a call of another one may wait for: the call is then taken back, and is still due."""


@contextlib.asynccontextmanager
async def durable(  # noqa: PLR0913 (each is one fact about the run)
    task: str,
    *,
    runs: eventlog.Runs,
    run: str | None = None,
    name: str = "agent",
    framework: str = "python",
    tools: Sequence[Tool] = (),
    limits: Limits | None = None,
    approve: Literal["ask", "off"] = "ask",
    labels: Mapping[str, str] | None = None,
    on_question: OnQuestion | None = None,
    watch: Watch | None = None,
    clock: Clock | None = None,
    grace: float = GRACE,
) -> AsyncIterator[Durable]:
    """Make the code in a block durable: start the run of this id, or carry it on.

    The block runs again from the top each time. What it did by its run, a framework's adapter or `act` and `step`, is
    handed back as it was saved; everything else in it must follow from that. When the block ends without an error the
    run is done, with the `answer` that the block set, or else the text of the last reply. A block in a call of another
    run has limits of its own: what it spends is not counted in that run's.

    `task` is what the run is for, and `framework` whose loop it is. Without `run` a new run is started; in a tool of
    another run, that call's own. `name` is the program's, as an agent's is; `tools` are those that it declares
    beforehand. `limits` and `approve` are as for `Agent`, all else is as for `start`.

    Raises:
        NeedsDecision: A person must answer first; then run the same code again.
        Stopped: The run stopped; the class names the reason.
        replay.Diverged: The code goes another way than the log.
        RunExists: The id is that of a run that was begun otherwise.
        RunLocked: Another process has it.
        RunError, LogError: As `start` and `resume`.
    """
    program = Program(name=name, tools=tools, limits=limits or Limits(), approve=approve, framework=framework)
    given: dict[str, Any] = {"store": eventlog.store(runs), "watch": watch, "clock": clock, "grace": grace}
    opened = await _open(program, task, run or _own_name(name), labels, given)
    held = opened if isinstance(opened, Opened) else None  # else the run is only looked at
    outer, life, store = HERE.get(), held.life if held is not None else None, given["store"]
    try:
        fresh = held is not None and not held.resumed
        lines = () if fresh else (await off_loop(functools.partial(store.read, opened.state.run))).lines
        here = Durable(program, opened.state, held, Cursor(lines), on_question)
        HERE.set(here)
        async with _held(life, store):
            try:
                with branches.entered():
                    yield here
            except BaseException as error:
                await here.end(error)
                raise
            await here.end()
    except Exception as error:
        if outer is None or not isinstance(error, RESTS):
            raise
        raise ControlSignal(error) from error  # through the framework around this one
    finally:
        HERE.set(outer)
        if life is not None:
            await off_loop(life.end)


@contextlib.asynccontextmanager
async def _held(life: Life | None, store: eventlog.Store) -> AsyncIterator[None]:
    """While this lasts, others see that the run is held here, and signals drain it; nothing for one only looked at."""
    with contextlib.ExitStack() as while_it_lasts:
        if life is not None:
            while_it_lasts.enter_context(await off_loop(store.enter, kept=True))
            while_it_lasts.enter_context(signals.drains(life.drain))
            while_it_lasts.enter_context(counted(2))  # a framework's loop waits for no disk
        yield


async def _open(
    program: Program, task: str, run: str | None, labels: Mapping[str, str] | None, given: dict[str, Any]
) -> Opened | Finished[Any]:
    """Start a run, or attach to the one of this id, in a thread."""
    store: eventlog.Store = given["store"]
    if run is None or await off_loop(functools.partial(attach.made, store, run)) is None:
        try:
            make = functools.partial(opening.create, program, task, run=run, labels=labels, **given)
            return await off_loop(make, kept=True)
        except (eventlog.RunExists, eventlog.RunLocked):  # another process was faster
            if run is None:
                raise
    await attach.existing(program, task, run, inputs=None, store=store, after=None)
    return await off_loop(functools.partial(opening.reopen, run, program, **given), kept=True)


def _own_name(name: str) -> str | None:
    """The id of a run inside a call of another one: the same each time that the call is tried."""
    call = CURRENT.get(None)
    return None if call is None else f"{name}-{replay.digest_value([call.uid, call.id])[:16]}"
