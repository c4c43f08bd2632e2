"""One thing that a program waits for: a body to run, in the program's own context, and a future of what comes of it."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from typing import Any

from runner._agent.call import CURRENT, Call, Withdrawn
from runner._durable import branches


class ControlSignal(BaseException):
    """The run goes no further in this process: a pause, a stop, another way. `error` says why.

    It goes through a framework without being caught there: frameworks turn exceptions into messages of tools. It is
    raised again by everything that is done with the run afterwards; the end of the block raises `error` itself.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Demand:
    """A body and its future. Made where the program asks; run where the engine runs a model or a tool."""

    def __init__(self, body: Callable[..., object] | None) -> None:
        self.body = body
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.error: BaseException | None = None
        self.withdrawn = False
        self._context = contextvars.copy_context()

    def __bool__(self) -> bool:
        """Whether the program still waits for it."""
        return not self.future.done()

    @property
    def is_async(self) -> bool:
        """Whether the body runs in the loop; any other runs in a thread."""
        return self.body is None or inspect.iscoroutinefunction(self.body)

    @property
    def runs(self) -> Callable[..., object] | None:
        """The body as the engine calls it; None when the program brought none."""
        return None if self.body is None else self._in_loop if self.is_async else self._in_thread

    def give(self, value: object) -> None:
        """Let the program go on with a value."""
        if self:
            self.future.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Let the program go on with an error."""
        if self:
            self.future.set_exception(error)
            self.future.exception()  # nobody may be waiting any more

    async def _in_loop(self, *args: Any) -> object:
        assert self.body is not None
        made: Any = self.body(*args) if not args else self._context_of(args[0]).run(self.body, *args)
        task = asyncio.get_running_loop().create_task(made, context=self._context_of(*args))
        try:
            return await task
        except BaseException as error:
            task.cancel()  # a process that dies here begins nothing more
            raise self._noted(error) from error

    def _in_thread(self, *args: Any) -> object:
        assert self.body is not None
        try:
            return self._context_of(*args).run(self.body, *args)
        except BaseException as error:
            raise self._noted(error) from error

    def _context_of(self, *args: Any) -> contextvars.Context:
        """A context for one attempt, in which `current_call` is its call and steps are that call's."""
        context = self._context.copy()
        for call in args:
            assert isinstance(call, Call)
            context.run(CURRENT.set, call)
            context.run(branches.enter, call.id)
        return context

    def _noted(self, error: BaseException) -> BaseException:
        """The error as the engine is given it: a run inside that waits takes its call back."""
        self.error = error.error if isinstance(error, Withdrawn) else error
        self.withdrawn = isinstance(error, Withdrawn | ControlSignal)
        return Withdrawn(error) if isinstance(error, ControlSignal) else error
