"""Things put around a tool's body and in front of a model."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import runner


def _nothing() -> None:
    """What happens on the side that nobody named."""


def between(before: Callable[[], object] = _nothing, after: Callable[[], object] = _nothing) -> Callable[..., Any]:
    """Make a wrapper for `Tool.around`: the body between two calls, async if it is.

    The copy has the same name, schema, effect and lookup, so the log can't tell the two apart.

        dies = charge.around(testing.between(after=lambda: os.kill(os.getpid(), signal.SIGKILL)))

    Args:
        before: Called when the body would run.
        after: Called when the body has returned, before anything of that is saved; not when it raised.
    """

    def wrapped(body: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(body)
        async def awaited(*arguments: Any, **given: Any) -> Any:
            before()
            value = await body(*arguments, **given)
            after()
            return value

        @functools.wraps(body)
        def called(*arguments: Any, **given: Any) -> Any:
            before()
            value = body(*arguments, **given)
            after()
            return value

        return awaited if inspect.iscoroutinefunction(body) else called

    return wrapped


class AskedThrough:
    """A model with another `ask`."""

    def __init__(self, model: runner.Model, ask: Callable[[runner.Request], Coroutine[Any, Any, runner.Reply]]) -> None:
        """Take the rest from `model`."""
        self.name, self.bound, self.ask = model.name, model.bound, ask
