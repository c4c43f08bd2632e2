"""Dying on purpose, by SIGKILL, where it hurts most: between a marker and its effect, or an effect and its record.

A tool that kills is the same tool to everyone else: same name, schema, effect and lookup. The kill comes from inside
the body, so the marker is durable, and nothing of what the body returned has reached the runner.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
from collections.abc import Callable
from typing import Any

import runner


def before(tool: runner.Tool) -> runner.Tool:
    """A copy of `tool` that kills this process instead of running."""
    return tool.around(lambda body: _around(body, first=die))


def after(tool: runner.Tool) -> runner.Tool:
    """A copy of `tool` that kills this process when it would return. A body that raises does not return."""
    return tool.around(lambda body: _around(body, last=die))


def die() -> None:
    """SIGKILL to this process: no handler, no cleanup, as by a power switch."""
    os.kill(os.getpid(), signal.SIGKILL)


def _nothing() -> None:
    """What happens at the end of a tool that does not kill there."""


def _around(
    body: Callable[..., Any], *, first: Callable[[], None] = _nothing, last: Callable[[], None] = _nothing
) -> Callable[..., Any]:
    """`body` between two acts, and as async as it is."""
    if inspect.iscoroutinefunction(body):

        @functools.wraps(body)
        async def awaited(*arguments: object, **named: object) -> object:
            first()
            result = await body(*arguments, **named)
            last()
            return result

        return awaited

    @functools.wraps(body)
    def called(*arguments: object, **named: object) -> object:
        first()
        result = body(*arguments, **named)
        last()
        return result

    return called
