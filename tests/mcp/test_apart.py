"""What became of one request says nothing of another: not of one that HTTP turned away, nor of one of another run."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import mcp
import pytest

import eventlog
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
    """Runs `r0`, `r1` that make one call each, side by side over one connection; begun, or carried on."""

    async def run() -> list[Outcome]:
        async with server:
            tools = await server.tools()
            agents = [stage.agent([call, "done"], *tools) for call in calls]
            return await asyncio.gather(*(_on(f"r{n}", agent, runs) for n, agent in enumerate(agents)))

    return asyncio.run(run())


async def _on(run: str, agent: runner.Agent, runs: Path) -> Outcome:
    try:
        return await runner.resume(run, agent, runs=runs)
    except (runner.NoSuchRun, eventlog.NotARunsDirectory):
        return await runner.start(agent, "go", runs=runs, run=run)


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


@pytest.mark.fault("timeout")
def test_the_tools_of_a_server_whose_calls_take_turns_are_listed_while_one_is_under_way(shop: Shop) -> None:
    """What lists them sends no call. Another call waits, and two that wait together still go one after another."""
    server, order = Server(shop.over_stdio(), mode="legacy"), list[str]()

    async def call(name: str, seconds: float) -> None:
        await server.ask("sleepy", {"seconds": seconds})
        order.append(name)

    async def beside_a_call() -> None:
        async with server:
            first = asyncio.create_task(call("first", 600))
            await asyncio.sleep(0)
            others = [asyncio.create_task(call(f"other {n}", 0.01)) for n in range(3)]
            async with asyncio.timeout(30):
                await asyncio.sleep(0)
                assert "sleepy" in [tool.name for tool in await server.tools()]
                assert order == []
                first.cancel()
                await asyncio.gather(*others)
            assert order == ["other 0", "other 1", "other 2"]

    asyncio.run(beside_a_call())


def test_a_close_that_is_cancelled_while_a_server_takes_its_time_to_end_is_cancelled(shop: Shop) -> None:
    """It returned as if nobody had asked, and whoever was cancelled went on."""
    asyncio.run(_cancelled_close(shop))


async def _cancelled_close(shop: Shop) -> None:
    leaving, left = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        async with mcp.stdio_client(shop.over_stdio()) as streams:
            yield streams
        leaving.set()
        await left.wait()

    server = Server(transport)
    await server.tools()
    closing = asyncio.create_task(server.close())
    await leaving.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    left.set()


WAYS: dict[str, Callable[[Shop], Any]] = {
    "HTTP says whose the question is": lambda shop: shop.over_http(),
    "over stdio calls take turns": lambda shop: shop.over_stdio(),
    "of a transport nothing is known": lambda shop: lambda: mcp.stdio_client(shop.over_stdio()),
}


@pytest.mark.fault("a question without a call")
@pytest.mark.parametrize("way", WAYS)
def test_what_a_server_asks_in_one_call_is_put_to_no_other_run(way: str, shop: Shop, runs: Path) -> None:
    """An older server's question names no call, and a call of another run is under way while it comes."""
    server = Server(WAYS[way](shop), mode="legacy")
    asks, other = beside(server, runs, one("consent", cents=5, beside=True), one("sleepy", seconds=1))
    assert "the server asks: Pay 5 cents?" in stage.asked(asks)[0].why
    assert stage.finished(other) == "done"
    assert shop.payments() == []


@pytest.mark.fault("a question without a call")
@pytest.mark.parametrize("way", WAYS)
def test_calls_that_all_ask_are_each_answered_for_themselves(way: str, shop: Shop, runs: Path) -> None:
    """Of questions that came at once from who knows which, a person is told; called again alone, each asks its own."""
    server, rounds = Server(WAYS[way](shop), mode="legacy"), 0
    calls = [one("consent", cents=cents) for cents in (5, 7)]
    ends = beside(server, runs, *calls)
    while waiting := {f"r{n}": stage.asked(end) for n, end in enumerate(ends) if isinstance(end, runner.Paused)}:
        rounds += 1
        for run, (question,) in waiting.items():
            said = f'{{"agreed": true, "note": "{run}"}}' if "Pay" in question.why else ""
            runner.settle(run, question.id, "ann", "rerun", said, runs=runs)
        ends = beside(server, runs, *calls)
    assert list(map(stage.finished, ends)) == ["done", "done"]
    assert sorted((cents, note) for _, cents, note in shop.payments()) == [(5, "r0"), (7, "r1")]
    assert rounds <= 3
