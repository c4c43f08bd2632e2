"""What became of one request says nothing of another: not of one that HTTP turned away, nor of one of another run."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.mcp
from runner.mcp import Server
from tests.mcp.places import Shop
from tests.mcp.playing import Outcome, ends, one, play
from tests.support import stage
from tests.web import wire


def speaks(call: Callable[[wire.Connection, Any], object]) -> wire.Manner:
    """An HTTP server of the newest protocol with one tool, `act`; what a call of it does is said here."""

    def manner(connection: wire.Connection) -> None:
        while (seen := connection.read()) is not None:
            asked = wire.sent(seen)
            if asked["method"] == "tools/call":
                call(connection, asked)
            elif asked["method"] == "server/discover":
                says(connection, asked, supportedVersions=["2026-07-28"], capabilities={"tools": {}})
            else:
                says(connection, asked, tools=[{"name": "act", "inputSchema": {"type": "object"}}])

    return manner


def says(connection: wire.Connection, asked: Any, **result: Any) -> None:
    """Answer a request with this result."""
    result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    sends(connection, "application/json", json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))


def sends(connection: wire.Connection, kind: str, body: str) -> None:
    """Send this body as the answer to a request."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.socket.sendall(head.encode() + body.encode())


@pytest.mark.fault("refused by HTTP")
@pytest.mark.parametrize("effect", ["non_idempotent", "reads"])
@pytest.mark.parametrize(
    ("status", "did", "after"),
    [
        *[(status, "nothing", None) for status in (401, 403, 405)],
        (429, "nothing", 1.0),
        (429, "nothing", 7.0),
        *[(status, "unknown", None) for status in (400, 404, 500)],
        (503, "unknown", 7.0),
    ],
)
def test_what_http_turned_away_did_nothing(status: int, did: str, after: float | None, effect: Any, runs: Path) -> None:
    """The SDK makes one error of all of these; a 404 may come with a tool's own protocol error and proves nothing.

    A server that says when to come again is left alone until then. A read did nothing, whatever came of it.
    """
    asks = f"retry-after: {after:g}\r\n" if after is not None and after > 1 else ""

    def turned_away(connection: wire.Connection, _: Any) -> None:
        connection.socket.sendall(f"HTTP/1.1 {status} No\r\n{asks}content-length: 0\r\n\r\n".encode())

    with wire.service(speaks(turned_away)) as service:
        play(Server(service.url, trust={"act": {"effect": effect, "attempts": 1}}), runs, one("act"))
    if effect == "reads" and did == "unknown":
        did, after = "nothing", after or 1.0
    assert [end[:2] for end in ends(runs)] == [(did, after)]


def beside(server: Server, runs: Path, *calls: runner.Reply) -> list[Outcome]:
    """Runs that make one call each, side by side over one connection, by their order `r0`, `r1`."""

    async def run() -> list[Outcome]:
        async with server:
            tools = await server.tools()
            agents = [stage.agent([call, "done"], *tools) for call in calls]
            starts = [runner.start(agent, "go", runs=runs, run=f"r{n}") for n, agent in enumerate(agents)]
            return await asyncio.gather(*starts)

    return asyncio.run(run())


@pytest.mark.fault("timeout")
def test_a_call_that_takes_too_long_ends_none_of_another_run(shop: Shop, runs: Path) -> None:
    """Its process is left alone as long as another call of it is in flight."""
    server = Server(shop.over_stdio(), trust={"sleepy": {"timeout": 0.2}})
    cut, slow = beside(server, runs, one("sleepy", seconds=30), one("patient", legs=4))
    assert [question.kind for question in stage.asked(cut)] == ["settle"]
    assert stage.finished(slow) == "done"


@pytest.mark.fault("connection reset")
def test_a_connection_that_breaks_in_one_call_ends_none_of_another_run(runs: Path) -> None:
    """Each request has a way of its own to an HTTP server, and only that broke."""
    waits, broke = threading.Event(), threading.Event()

    def acts(connection: wire.Connection, asked: Any) -> None:
        if asked["params"]["arguments"] == {"waits": True}:
            waits.set()
            broke.wait(wire.PATIENCE)
            says(connection, asked, content=[])
        else:
            waits.wait(wire.PATIENCE)
            connection.reset()

    def look(_: runner.Call) -> runner.Unsure:
        broke.set()
        return runner.Unsure()

    with wire.service(speaks(acts)) as service:
        server = Server(service.url, trust={"act": {"lookup": look}})
        waited, lost = beside(server, runs, one("act", waits=True), one("act"))
    assert stage.finished(waited) == "done"
    assert [question.kind for question in stage.asked(lost)] == ["settle"]
