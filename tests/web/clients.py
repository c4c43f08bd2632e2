"""The four kinds of client that tools use: httpx and httpx2, each sync and async; and tools made with one.

A test's tool is written once, as a sync function of a `Sender`; for an async client the same steps are awaited.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import httpx
import httpx2
import pytest

import runner
import runner.testing
import runner.web
from replay.events import AttemptEnded, ResultRecorded
from tests.support import stage

Ended = AttemptEnded | ResultRecorded
DAY = timedelta(hours=24)
PLAIN: dict[str, Any] = {"trust_env": False, "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}
"""No proxy of the developer's, and no certificates: reading them takes longer than these tests."""


@dataclass(frozen=True)
class Kind:
    """A client library in one of its two styles."""

    library: ModuleType
    awaited: bool

    def send(self, method: str, url: str, *, hook: Any = runner.web.key_hook, **options: Any) -> Callable[..., Any]:
        """A tool's body: one request, classified."""
        request = {name: options.pop(name) for name in ("json", "content", "headers") if name in options}
        given = PLAIN | {"event_hooks": {"request": [hook] if hook else []}, "timeout": 5.0, **options}

        def sync() -> Any:
            with self.library.Client(**given) as client, runner.web.sending():
                return runner.web.result(client.request(method, url, **request))

        async def awaiting() -> Any:
            async with self.library.AsyncClient(**given) as client:
                with runner.web.sending():
                    return runner.web.result(await client.request(method, url, **request))

        return awaiting if self.awaited else sync


KINDS = {
    f"{library.__name__} {'async' if awaited else 'sync'}": Kind(library, awaited)
    for library in (httpx, httpx2)
    for awaited in (False, True)
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


def tool(
    body: Callable[..., Any],
    effect: Literal["reads", "idempotent", "keyed", "non_idempotent"] = "keyed",
    attempts: int = 1,
) -> runner.Tool:
    """A tool with this body."""
    return runner.Tool(body, name="act", effect=effect, key_ttl=DAY if effect == "keyed" else None, attempts=attempts)


def ended(runs: Path, *tools: runner.Tool) -> list[Ended]:
    """Run one call of `act`; how each of its attempts ended, in order."""
    stage.start([runner.testing.tool_calls(("act", {})), "done"], *tools, runs=runs, clock=stage.Ticking())
    return [
        event
        for line in stage.lines(runs)
        for event in line
        if isinstance(event, AttemptEnded) or (isinstance(event, ResultRecorded) and event.how == "ran")
    ]


def did(runs: Path, *tools: runner.Tool) -> tuple[str, float | None, str]:
    """What the only attempt of the only call did: nothing, unknown or ran; what it asked to wait; what it said."""
    (end,) = ended(runs, *tools)
    if isinstance(end, ResultRecorded):
        return end.how, None, end.text
    return end.did, end.retry_after, end.error


def gathered(*steps: Awaitable[Any]) -> Any:
    """Await these at once, from a sync tool."""

    async def together() -> list[Any]:
        return await asyncio.gather(*steps)

    return asyncio.run(together())
