"""A server's tools as an agent's: what goes to the server, what comes back, and what a lost call means."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import mcp
import pytest

import runner
import runner.mcp
from runner.mcp import Server, Terms, hints
from tests.mcp.places import Shop
from tests.mcp.playing import ends, one, play, text
from tests.runner import stage
from tests.web.wire import nobody

KEPT = Terms(effect="keyed", remembers=timedelta(days=1))


@pytest.fixture(params=["stdio", "http"])
def where(request: pytest.FixtureRequest, shop: Shop) -> Any:
    """Both ways to a shop."""
    return shop.over_stdio() if request.param == "stdio" else shop.over_http()


def test_tools_keep_their_names_descriptions_and_schemas(where: Any) -> None:
    """The model reads what the server says about them; a prefix keeps two servers apart."""
    tools = {tool.name: tool for tool in Server(where, prefix="shop_").tools_sync()}
    pay = tools["shop_pay"]
    assert pay.description == "Pay an amount."
    assert pay.schema["required"] == ["cents"]
    assert pay.schema["properties"]["cents"]["type"] == "integer"
    assert len(tools) == 10


def test_every_tool_is_once_until_somebody_says_otherwise(shop: Shop) -> None:
    """`find` says that it only reads; that is a stranger's word."""
    assert {tool.effect for tool in Server(shop.over_http()).tools_sync()} == {"once"}


def test_trust_says_what_a_repeat_does(shop: Shop) -> None:
    """By name, for all, or by believing the annotations."""
    url = shop.over_http()
    named = {t.name: t.effect for t in Server(url, trust={"pay": KEPT, "find": "reads", "broken": hints}).tools_sync()}
    assert [named[name] for name in ("pay", "find", "broken", "slow")] == ["keyed", "reads", "idempotent", "once"]
    believed = {t.name: (t.effect, t.approval) for t in Server(url, trust=hints).tools_sync()}
    assert [believed[name] for name in ("pay", "find", "broken", "slow")] == [
        ("once", True),
        ("reads", False),
        ("idempotent", False),
        ("once", True),
    ]


def test_trust_in_a_tool_that_is_not_there_is_an_error(shop: Shop) -> None:
    """A typing error would leave the tool that was meant without its terms."""
    with pytest.raises(runner.BadTool, match=r"pya can't be a tool: the server lists no such tool \(it lists broken,"):
        Server(shop.over_http(), trust={"pya": "reads"}).tools_sync()


def test_the_key_goes_beside_the_arguments_with_the_run_the_call_and_the_attempt(
    where: Any, shop: Shop, runs: Path
) -> None:
    """What only reads takes no key: a server must not remember a question under it."""
    server = Server(where, trust={"find": "reads"})
    assert stage.finished(play(server, runs, runner.calls(("pay", {"cents": 5}), ("find", {"key": "k"})))) == "done"
    key = runner.key("r", "1.0")
    assert shop.seen() == [
        {"run": "r", "call": "1.0", "attempt": 1, "idempotency-key": key},
        {"run": "r", "call": "1.1", "attempt": 1},
    ]
    assert shop.payments() == [(key, 5, "")]
    assert text(runs) == '{"payment": 1}'


def test_what_a_tool_returned_is_text_or_json_and_an_error_is_a_result(where: Any, runs: Path) -> None:
    """The tool ran and says that it went wrong: the model reads it, and nothing is open."""
    play(Server(where), runs, runner.calls(("broken", {}), ("shapeless", {}), ("picture", {})))
    assert text(runs, "1.0") == '{"isError": true, "content": "Error executing tool broken: the till is empty"}'
    assert text(runs, "1.1") == "one\ntwo"
    assert text(runs, "1.2") == (
        '["a picture", {"type": "image", "data": "[8 characters of base64]", "mimeType": "image/png"}]'
    )
    assert ends(runs) == []


def test_arguments_that_the_schema_forbids_never_reach_the_server(shop: Shop, runs: Path) -> None:
    """The model reads what is wrong, and no attempt is made."""
    play(Server(shop.over_http()), runs, runner.calls(("pay", {"cents": "5"}), ("pay", {}), ("pay", "[5]")))
    assert [stage.results(runs)[call].how for call in ("1.0", "1.1", "1.2")] == ["invalid"] * 3
    assert text(runs, "1.0") == "The call was not run: its arguments can't be used, $.cents must be integer."
    assert shop.seen() == []


def test_progress_is_passed_on_with_its_call(where: Any, runs: Path) -> None:
    """To a function or a coroutine function of the user's."""
    heard: list[tuple[str, float, float | None, str | None]] = []

    async def progress(call: runner.Call, done: float, total: float | None, message: str | None) -> None:
        heard.append((call.id, done, total, message))

    play(Server(where, on_progress=progress), runs, one("slow"))
    assert heard == [("1.0", 1.0, 2.0, "step 1"), ("1.0", 2.0, 2.0, "step 2")]


def test_a_server_that_can_t_be_reached_was_asked_to_do_nothing(tmp_path: Path) -> None:
    """Listing says so; it names the server and the reason."""
    for where, why in (
        (nobody(), "ConnectError"),
        (mcp.StdioServerParameters(command=str(tmp_path / "no")), "No such"),
    ):
        with pytest.raises(runner.mcp.ServerDown, match=why) as down:
            Server(where, name="the shop").tools_sync()
        assert str(down.value).startswith("the MCP server the shop could not be reached: ")


def test_a_server_that_never_answers_is_given_up() -> None:
    """A program that is no MCP server must not hang the run."""
    mute = mcp.StdioServerParameters(command=sys.executable, args=["-S", "-c", "import sys; sys.stdin.read()"])
    with pytest.raises(runner.mcp.ServerDown, match=r"no answer within 0.2 s"):
        Server(mute, connect=0.2).tools_sync()


def test_a_call_to_a_server_that_went_away_between_two_calls_is_no_question(shop: Shop, runs: Path) -> None:
    """Its connection is refused, so nothing was sent: the call has failed, and no person is asked."""
    server = Server(shop.over_http())

    async def end(turn: int) -> None:
        if turn == 1:
            await _killed(shop.pid)

    assert stage.finished(play(server, runs, one("pay", cents=1), one("pay", cents=2), after=end)) == "done"
    assert [(did, after) for did, after, _ in ends(runs)] == [("nothing", 1.0)] * 3
    assert stage.results(runs)["2.0"].how == "failed"
    assert [cents for _, cents, _ in shop.payments()] == [1]


def test_a_server_that_was_started_anew_is_connected_to_anew(shop: Shop, runs: Path) -> None:
    """Over HTTP and over stdio alike, and the call that finds the old connection gone loses nothing."""

    async def again(turn: int) -> None:
        if turn == 1:
            await _killed(shop.pid)
            shop.over_http()

    assert stage.finished(play(Server(shop.over_http()), runs, one("pay", cents=1), one("pay", cents=2), after=again))
    assert [cents for _, cents, _ in shop.payments()] == [1, 2]
    assert not [end for end in ends(runs) if end[0] == "unknown"]


def test_a_process_that_died_between_two_calls_is_started_again(shop: Shop, runs: Path) -> None:
    """The next call knows before it sends that the connection has ended."""

    async def end(turn: int) -> None:
        if turn == 1:
            shop.trouble("after")
            with suppress(Exception):
                await server.ask("pay", {"cents": 9})

    server = Server(shop.over_stdio())
    assert stage.finished(play(server, runs, one("pay", cents=1), one("pay", cents=2), after=end)) == "done"
    assert ends(runs) == []
    assert [cents for _, cents, _ in shop.payments()] == [1, 9, 2]


def test_a_call_that_takes_too_long_is_unknown(where: Any, runs: Path) -> None:
    """The server was told to stop, and may have acted all the same."""
    paused = play(Server(where, trust={"sleepy": Terms(timeout=0.1)}), runs, one("sleepy", seconds=30))
    assert [question.kind for question in stage.asked(paused)] == ["settle"]
    assert [did for did, _, _ in ends(runs)] == ["unknown"]


@pytest.mark.parametrize("code", [-32602, -32601, -32603, -32600, -32000, -32001, 7])
def test_a_protocol_error_is_unknown_because_a_tool_may_send_it_after_it_acted(
    code: int, shop: Shop, runs: Path
) -> None:
    """The shop's moody tool does: it pays first."""
    paused = play(Server(shop.over_http()), runs, one("moody", code=code))
    assert [question.kind for question in stage.asked(paused)] == ["settle"]
    assert ends(runs) == [("unknown", None, f"the server answered with error {code}: not today")]
    assert len(shop.payments()) == 1


def test_a_user_may_know_which_errors_come_before_a_server_acts(shop: Shop, runs: Path) -> None:
    """Then the model reads the refusal at once."""
    server = Server(shop.over_http(), trust={"moody": Terms(refused=[-32602])})
    assert stage.finished(play(server, runs, one("moody", code=-32602))) == "done"
    assert ends(runs) == [("nothing", None, "the server answered with error -32602: not today")]


@pytest.mark.parametrize("code", [-32020, -32022])
def test_what_the_protocol_refuses_unread_did_nothing_and_is_sent_again(code: int, shop: Shop, runs: Path) -> None:
    """A header that does not match and a version that is not spoken: the request was not looked at."""
    assert stage.finished(play(Server(shop.over_http()), runs, one("moody", code=code))) == "done"
    assert [(did, after) for did, after, _ in ends(runs)] == [("nothing", 1.0)] * 3


def test_a_read_that_failed_is_tried_again(shop: Shop, runs: Path) -> None:
    """Nothing can have acted, so there is nothing to settle."""
    server = Server(shop.over_http(), trust="reads")
    assert stage.finished(play(server, runs, one("moody", code=7))) == "done"
    assert [(did, after) for did, after, _ in ends(runs)] == [("nothing", 1.0)] * 3


def test_a_lookup_asks_the_server_without_a_key(shop: Shop, runs: Path) -> None:
    """`Server.ask` is for lookups: this one finds the payment whose answer was lost."""
    shop.trouble("after")

    async def find(call: runner.Call) -> runner.Found | runner.Missing:
        found = await server.ask("find", {"key": call.key})
        return runner.Found(found) if found["payment"] else runner.Missing()

    server = Server(shop.over_stdio(), trust={"pay": Terms(lookup=find, lands_within=0)})
    assert stage.finished(play(server, runs, one("pay", cents=5))) == "done"
    assert (stage.results(runs)["1.0"].how, text(runs)) == ("found", '{"payment": 1}')
    assert shop.seen()[1:] == [{}]


def test_one_server_serves_one_event_loop_after_another(shop: Shop, runs: Path) -> None:
    """A module may list its tools when it is imported; each run then connects in its own loop."""
    agent = runner.Agent(
        model=runner.ScriptedModel([one("pay", cents=5), "done"]), tools=Server(shop.over_stdio()).tools_sync()
    )
    for run in ("a", "b"):
        assert stage.finished(runner.start_sync(agent, "go", runs=runs, run=run)) == "done"
    assert len(shop.payments()) == 2


def test_a_transport_of_one_s_own_is_made_for_each_connection(shop: Shop) -> None:
    """That is how an HTTP client with a login is brought along."""
    made: list[Any] = []

    def transport() -> Any:
        made.append(mcp.stdio_client(shop.over_stdio()))
        return made[-1]

    server = Server(transport)
    assert [len(server.tools_sync()) for _ in range(2)] == [10, 10]
    assert len(made) == 2


async def _killed(pid: int) -> None:
    """End a process that is not ours to wait for."""
    os.kill(pid, signal.SIGKILL)
    for _ in range(1000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(pid)
