"""A run that a worker was given: what it comes to, and what may be said to it."""

import asyncio
import functools
from typing import Any, Generic

from replay import State
from runner._agent.agent import Agent
from runner._agent.generics import Defaults, TypeVar
from runner._engine.save_pool import off_loop
from runner._engine.session import outcome
from runner._engine.stream import Stream, stream
from runner._runs import load
from runner._runs.posting import Receipt, park, stop
from runner._runs.questions import Outcome
from runner._runs.say import send
from runner._service.carrier import Carrier
from runner._service.due import is_due
from runner.errors import Interrupted

Output_co = TypeVar("Output_co", covariant=True, default=str)
LOOK = 0.5
"""Seconds between looks at a run that another process holds."""


class Run(Defaults, Generic[Output_co]):
    """A run of a `Worker`, which carries it on here, or somebody else does. `id` is its name."""

    def __init__(self, carrier: Carrier, run: str, agent: Agent[Any, Any, Output_co]) -> None:
        self._carrier = carrier
        self._agent = agent
        self.id = run

    async def outcome(self) -> Outcome[Output_co]:
        """Wait until the run is done, or goes no further by itself.

        Returns:
            `Finished`, `Paused` when a person must decide, or `Waiting` when it rests for more than a few seconds.

        Raises:
            Stopped: The run stopped; the class names the reason. `Interrupted` when this worker left before.
            Exception: What else ended the run's life in this worker.
        """
        while True:
            with self._carrier.listening(self.id) as ended:
                if not self._carrier.has(self.id):
                    if self._carrier.draining:
                        raise Interrupted(self.id, "the worker left")
                    state = await off_loop(self._resting)
                    if state is not None:
                        return outcome(self._agent, state)
                await asyncio.wait({ended}, timeout=None if self._carrier.has(self.id) else LOOK)
                came = ended.result() if ended.done() else None
            if isinstance(came, BaseException):
                raise came
            if came is not None:
                return came

    async def stop(self, who: str) -> Receipt:
        """Stop the run for good, in the name of `who`, as `runner.stop` does."""
        return await off_loop(functools.partial(stop, self.id, who, runs=self._carrier.store))

    async def park(self, who: str) -> Receipt:
        """Hold the run back, in the name of `who`, as `runner.park` does."""
        return await off_loop(functools.partial(park, self.id, who, runs=self._carrier.store))

    async def send(self, text: str, who: str) -> Receipt:
        """Write to the run, in the name of `who`, as `runner.send` does."""
        return await off_loop(functools.partial(send, self.id, text, who, runs=self._carrier.store))

    def events(self, *, after: int = -1) -> Stream:
        """Follow the run, as `runner.stream` does."""
        return stream(self.id, runs=self._carrier.store, after=after)

    def state(self) -> State:
        """Read the run's state, as `runner.read_state` does."""
        return load.read(self._carrier.store, self.id)

    def _resting(self) -> State | None:
        """The state of a run that nobody carries on and nobody must."""
        store = self._carrier.store
        state = self.state() if store.holder(self.id) is None else None
        return None if state is None or is_due(state, store.now()) else state
