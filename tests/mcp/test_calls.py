"""A server's tools as an agent's: what goes to the server, what comes back, and what a lost call means."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import mcp
import pytest

import runner
import runner.mcp
import runner.testing
from runner.mcp import Server, _attempt, hints
from tests.mcp.places import Shop
from tests.mcp.playing import ends, one, play, text
from tests.support import stage

KEPT = {"effect": "keyed", "key_ttl": timedelta(days=1)}


def test_tools_keep_their_names_descriptions_and_schemas(where: Any) -> None:
    """The model reads what the server says about them; a prefix keeps two servers apart."""
    tools = {tool.name: tool for tool in Server(where, prefix="shop_").tools_sync()}
    pay = tools["shop_pay"]
    assert pay.description == "Pay an amount."
    assert pay.schema["required"] == ["cents"]
    assert pay.schema["properties"]["cents"]["type"] == "integer"
    assert len(tools) == 11


@pytest.mark.fault("a tool name that providers refuse")
@pytest.mark.parametrize("prefix", ["my.shop/", "größe ", "x" * 70])
def test_a_name_that_providers_refuse_is_mapped_and_calls_its_tool(prefix: str, shop: Shop, runs: Path) -> None:
    """A provider answers 400 to the whole request for one such name."""
    server = Server(shop.over_http(), prefix=prefix, trust="idempotent")
    tools = {tool.name: tool for tool in server.tools_sync()}
    assert len(tools) == 11
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in tools)
    assert list(tools) == [tool.name for tool in server.tools_sync()]
    pay = next(name for name, tool in tools.items() if tool.description == "Pay an amount.")
    stage.start([runner.testing.tool_calls((pay, {"cents": 7})), "paid"], *tools.values(), runs=runs)
    assert [cents for _, cents, _ in shop.payments()] == [7]


def test_every_tool_is_once_until_somebody_says_otherwise(shop: Shop) -> None:
    """`find` says that it only reads; that is a stranger's word."""
    assert {tool.effect for tool in Server(shop.over_http()).tools_sync()} == {"non_idempotent"}


def test_trust_says_what_a_repeat_does(shop: Shop) -> None:
    """By name, for all, or by believing the annotations."""
    url = shop.over_http()
    named = {t.name: t.effect for t in Server(url, trust={"pay": KEPT, "find": "reads", "broken": hints}).tools_sync()}
    assert [named[name] for name in ("pay", "find", "broken", "slow")] == [
        "keyed",
        "reads",
        "idempotent",
        "non_idempotent",
    ]
    believed = {t.name: (t.effect, t.approval) for t in Server(url, trust=hints).tools_sync()}
    assert [believed[name] for name in ("pay", "find", "broken", "slow")] == [
        ("non_idempotent", True),
        ("reads", False),
        ("idempotent", False),
        ("non_idempotent", True),
    ]


def test_trust_in_a_tool_or_an_option_that_is_not_there_is_an_error(shop: Shop) -> None:
    """A typing error would leave the tool that was meant without its terms."""
    with pytest.raises(runner.BadTool, match=r"pya can't be a tool: the server lists no such tool \(it lists broken,"):
        Server(shop.over_http(), trust={"pya": "reads"}).tools_sync()
    with pytest.raises(runner.BadTool, match=r"pay can't be a tool: there is no option efect: "):
        Server(shop.over_http(), trust={"pay": {"efect": "reads"}}).tools_sync()


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"visible_within": 5}, "pay can't be a tool: visible_within says when a lookup is believed, and it has none"),
        ({"refused": -32602}, r"pay can't be a tool: refused is -32602, not codes of errors, such as \[-32602\]"),
        ({"refused": "-32602"}, "pay can't be a tool: refused is '-32602', not codes"),
        ({"refused": ["-32602"]}, r"pay can't be a tool: refused is \['-32602'\], not codes"),
    ],
)
def test_terms_that_would_do_nothing_or_fail_in_a_call_are_an_error(terms: Any, why: str, shop: Shop) -> None:
    """They are told where they are written, as an option of `runner.tool` is."""
    with pytest.raises(runner.BadTool, match=why):
        Server(shop.over_http(), trust={"pay": terms}).tools_sync()


def test_the_key_goes_beside_the_arguments_with_the_run_the_call_and_the_attempt(
    where: Any, shop: Shop, runs: Path
) -> None:
    """What only reads takes no key: a server must not remember a question under it."""
    server = Server(where, trust={"find": "reads"})
    assert (
        stage.finished(play(server, runs, runner.testing.tool_calls(("pay", {"cents": 5}), ("find", {"key": "k"}))))
        == "done"
    )
    key = stage.key(runs, "1.0")
    assert shop.seen() == [
        {"run": "r", "call": "1.0", "attempt": 1, "idempotency-key": key},
        {"run": "r", "call": "1.1", "attempt": 1},
    ]
    assert shop.payments() == [(key, 5, "")]
    assert text(runs) == '{"payment": 1}'


def test_what_a_tool_returned_is_text_or_json_and_an_error_is_a_result(where: Any, runs: Path) -> None:
    """The tool ran and says that it went wrong: the model reads it, and none is in doubt."""
    play(Server(where), runs, runner.testing.tool_calls(("broken", {}), ("shapeless", {}), ("picture", {})))
    assert text(runs, "1.0") == '{"isError": true, "content": "Error executing tool broken: the till is empty"}'
    assert text(runs, "1.1") == "one\ntwo"
    *seen, sound, file = json.loads(text(runs, "1.2"))
    assert seen == ["a picture", "[image 1: image/png, 8 characters of base64]"]
    assert (sound["data"], file["resource"]["blob"]) == ("[8 characters of base64]",) * 2
    assert ends(runs) == []


def test_arguments_that_the_schema_forbids_never_reach_the_server(shop: Shop, runs: Path) -> None:
    """The model reads what is wrong, and no attempt is made."""
    play(
        Server(shop.over_http()), runs, runner.testing.tool_calls(("pay", {"cents": "5"}), ("pay", {}), ("pay", "[5]"))
    )
    assert [stage.results(runs)[call].how for call in ("1.0", "1.1", "1.2")] == ["invalid"] * 3
    assert (
        text(runs, "1.0") == "The call was not run: its arguments can't be used, $.cents: '5' is not of type 'integer'."
    )
    assert shop.seen() == []


def test_whoever_follows_a_run_hears_of_a_server_s_progress(where: Any, runs: Path) -> None:
    """As of any tool's."""
    heard: list[tuple[str | None, float | None, str]] = []
    followers: list[asyncio.Task[None]] = []

    async def follow(stream: AsyncIterator[Any]) -> None:
        async for piece in stream:
            if piece.kind == "progress":
                heard.append((piece.call, piece.fraction, piece.text))
            if len(heard) == 2:
                return

    async def listen(turn: int) -> None:
        if turn == 0:
            stream = aiter(runner.stream("r", runs=runs))
            await anext(stream)
            followers.append(asyncio.create_task(follow(stream)))
        else:
            await asyncio.wait_for(followers[0], 60)

    play(Server(where), runs, one("slow"), after=listen)
    assert heard == [("1.0", 0.5, "step 1"), ("1.0", 1.0, "step 2")]


def test_legs_without_a_question_go_on_by_themselves(shop: Shop, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each under a sub-key of its own; a server that never comes to an end leaves the call open."""
    monkeypatch.setattr(_attempt, "BETWEEN", 0)
    server = Server(shop.over_http())
    paused = play(server, runs, one("patient", legs=2), one("patient", legs=99))
    assert text(runs) == stage.key(runs, "1.0/2")
    assert len(stage.asked(paused)) == 1
    assert ends(runs) == [("unknown", None, "the server asked for more input 10 times")]


def test_one_server_serves_one_event_loop_after_another(shop: Shop, runs: Path) -> None:
    """A module may list its tools when it is imported; each run then connects in its own loop."""
    agent = runner.Agent(
        name="agent",
        model=runner.testing.ScriptedModel([one("pay", cents=5), "done"]),
        tools=Server(shop.over_stdio()).tools_sync(),
    )
    for run in ("a", "b"):
        assert stage.finished(runner.start_sync(agent, "go", runs=runs, run=run)) == "done"
    assert len(shop.payments()) == 2


def test_whoever_comes_while_a_connection_opens_waits_for_it(shop: Shop) -> None:
    """Also when the first who asked for it has given up: else there would be no tools yet."""

    async def ask() -> int:
        starts = asyncio.Event()

        @contextlib.asynccontextmanager
        async def late() -> AsyncIterator[Any]:
            await starts.wait()
            async with mcp.stdio_client(shop.over_stdio()) as streams:
                yield streams

        server = Server(late)
        first = asyncio.create_task(server.tools())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        second = asyncio.create_task(server.tools())
        await asyncio.sleep(0)
        starts.set()
        tools = await second
        await server.close()
        return len(tools)

    assert asyncio.run(ask()) == 11


def test_a_connection_remembers_nothing_of_calls_that_ended(shop: Shop, runs: Path) -> None:
    """A worker keeps one for weeks."""
    server = Server(shop.over_http(), trust={"pay": KEPT, "broken": KEPT})
    known: list[int] = []

    async def count(_: int) -> None:
        connection = server._here().connection  # noqa: SLF001 (nothing public tells how much it holds)
        assert connection is not None
        known.append(len(connection.legs))

    play(server, runs, one("pay", cents=1), one("broken"), one("pay", cents=2), after=count)
    assert (text(runs, "3.0") != "", known) == (True, [0] * 4)


def test_a_transport_of_one_s_own_is_made_for_each_connection(shop: Shop) -> None:
    """That is how an HTTP client with a login is brought along."""
    made: list[Any] = []

    def transport() -> Any:
        made.append(mcp.stdio_client(shop.over_stdio()))
        return made[-1]

    server = Server(transport)
    assert [len(server.tools_sync()) for _ in range(2)] == [11, 11]
    assert len(made) == 2


def test_loops_that_run_at_the_same_time_have_a_connection_each(shop: Shop) -> None:
    """As in the threads of a web server: a call over another loop's connection fails, and each would start anew."""
    made: list[Any] = []

    def transport() -> Any:
        made.append(mcp.stdio_client(shop.over_stdio()))
        return made[-1]

    server = Server(transport)
    with asyncio.Runner() as one_loop, asyncio.Runner() as other:
        for loop in (one_loop, other) * 2:
            assert loop.run(server.ask("find", {"key": "a"})) == {"payment": None}
    assert len(made) == 2
