"""Things put around a tool's body and in front of a model."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import runner


def between(
    before: Callable[[], object] = lambda: None, after: Callable[[], object] = lambda: None
) -> Callable[..., Any]:
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


Ask = Callable[[runner.Model, runner.Request], Coroutine[Any, Any, runner.Reply]]
AnyAgent = runner.Agent[Any, Any, Any]


def instrumented(
    agent: AnyAgent, ask: Ask, tool: Callable[[runner.Tool], runner.Tool], **of_a_program: Any
) -> AnyAgent:
    """An agent whose model is asked through `ask`, and whose tools, and those of the agents among them, are others.

    `of_a_program`: what is replaced too where a program has a loop of its own, which comes up with tools.
    """

    def other(one: runner.Tool) -> runner.Tool:
        if (inner := getattr(one, "agent", None)) is None:
            return tool(one)
        child: Any = one.around(lambda body: body)
        child.agent = instrumented(inner, ask, tool, **of_a_program)
        return child  # type: ignore[no-any-return] # a copy of the tool

    asked = SimpleNamespace(name=agent.model.name, bound=agent.model.bound, ask=functools.partial(ask, agent.model))
    more = of_a_program if agent.framework else {}
    return agent.replace(model=asked, tools=[other(one) for one in agent.tools], **more)
