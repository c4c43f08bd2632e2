"""A call whose answer never came, or came as an error: what is certain, and what stays open."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import mcp
import pytest

import eventlog
import runner
import runner.mcp
from runner.mcp import Server
from tests.mcp.places import Shop
from tests.mcp.playing import ends, one, play, text
from tests.support import stage
from tests.web import wire

MUTE = mcp.StdioServerParameters(command=sys.executable, args=["-S", "-c", "import sys; sys.stdin.read()"])


def test_a_server_that_can_t_be_reached_was_asked_to_do_nothing(tmp_path: Path) -> None:
    """Listing says so; it names the server and the reason."""
    for where, why in (
        (wire.nobody(), "ConnectError"),
        (mcp.StdioServerParameters(command=str(tmp_path / "no")), "No such"),
    ):
        with pytest.raises(runner.mcp.ServerDown, match=why) as down:
            Server(where, name="the shop").tools_sync()
        assert str(down.value).startswith("the MCP server the shop could not be reached: ")


@pytest.mark.fault("server hangs")
def test_a_server_that_never_answers_is_given_up() -> None:
    """A program that is no MCP server must not hang the run."""
    with pytest.raises(runner.mcp.ServerDown, match=r"no answer within 0.2 s"):
        Server(MUTE, connect=0.2).tools_sync()


@pytest.mark.fault("server restarted")
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


@pytest.mark.fault("session forgotten")
def test_a_session_that_the_server_forgot_is_opened_again(shop: Shop, runs: Path) -> None:
    """An older protocol has sessions; a server that was started anew refuses what comes in one it does not know."""

    async def again(turn: int) -> None:
        if turn == 1:
            await _killed(shop.pid)
            shop.over_http()

    server = Server(shop.over_http(), mode="legacy")
    assert stage.finished(play(server, runs, one("pay", cents=1), one("pay", cents=2), after=again)) == "done"
    assert [cents for _, cents, _ in shop.payments()] == [1, 2]
    assert not [end for end in ends(runs) if end[0] == "unknown"]


@pytest.mark.fault("session forgotten")
def test_a_read_finds_its_way_back_from_a_forgotten_session(shop: Shop, runs: Path) -> None:
    """A read sends no key, and is tried again in a new session, as is a lookup."""

    async def again(turn: int) -> None:
        if turn == 1:
            await _killed(shop.pid)
            shop.over_http()

    server = Server(shop.over_http(), mode="legacy", trust={"find": "reads"})
    assert stage.finished(play(server, runs, one("find", key="a"), one("find", key="b"), after=again)) == "done"
    assert [end[0] for end in ends(runs)] == ["nothing"]
    assert stage.results(runs)["2.0"].how == "ran"


def handmade(*arguments: Path) -> mcp.StdioServerParameters:
    """The server that is written by hand, over stdio."""
    file = Path(__file__).with_name("handmade.py")
    return mcp.StdioServerParameters(command=sys.executable, args=["-S", *map(str, (file, *arguments))])


@pytest.mark.fault("half a character in a result")
def test_half_a_character_in_a_result_is_marked_and_the_rest_is_read(runs: Path) -> None:
    """Three attempts would be lost on it, and each of them acted."""
    assert stage.finished(play(Server(handmade()), runs, one("half"))) == "done"
    assert text(runs) == 'half \ufffd of \\ud83d, whole \U0001f600 "'


@pytest.mark.fault("server hangs")
@pytest.mark.parametrize(("effect", "calls"), [("reads", 2), ("idempotent", 1)])
def test_a_server_that_hung_in_one_call_is_started_anew_for_the_next(
    effect: Any, calls: int, runs: Path, tmp_path: Path
) -> None:
    """A process that hangs answers nothing more. A read that timed out is for the model to repeat."""
    server = Server(handmade(tmp_path / "first"), trust={"hangs": {"effect": effect, "timeout": 0.5}})
    assert stage.finished(play(server, runs, *[one("hangs")] * calls)) == "done"
    assert text(runs, f"{calls}.0") == "awake"


@pytest.mark.fault("malformed reply")
def test_an_answer_that_breaks_the_protocol_is_unknown(runs: Path) -> None:
    """The server answered something, so it may have acted; a list of tools may have pages, and a title for a text."""
    server = Server(handmade(), trust={"second": "reads"})
    assert [(tool.name, tool.description) for tool in server.tools_sync()][:2] == [
        ("first", ""),
        ("second", "The second"),
    ]
    paused = play(server, runs, one("first"))
    assert [question.kind for question in stage.asked(paused)] == ["settle"]
    assert ends(runs)[0][2].startswith("the server's answer does not follow the protocol: ")


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


@pytest.mark.fault("timeout")
def test_a_call_that_takes_too_long_is_unknown(where: Any, runs: Path) -> None:
    """The server was told to stop, and may have acted all the same."""
    paused = play(Server(where, trust={"sleepy": {"timeout": 0.1}}), runs, one("sleepy", seconds=30))
    assert [question.kind for question in stage.asked(paused)] == ["settle"]
    assert [did for did, _, _ in ends(runs)] == ["unknown"]


@pytest.mark.fault("protocol error")
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
    server = Server(shop.over_http(), trust={"moody": {"refused": [-32602]}})
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

    server = Server(shop.over_stdio(), trust={"pay": {"lookup": find, "visible_within": 0}})
    assert stage.finished(play(server, runs, one("pay", cents=5))) == "done"
    assert (stage.results(runs)["1.0"].how, text(runs)) == ("found", '{"payment": 1}')
    assert shop.seen()[1:] == [{}]


def test_a_lookup_that_hangs_is_asked_anew_of_a_new_process(runs: Path, tmp_path: Path) -> None:
    """The process that hangs would answer none of the three lookups, and a person would be asked."""

    async def find(_: runner.Call) -> runner.Found:
        return runner.Found(await server.ask("hangs"))

    server = Server(handmade(tmp_path / "first"), trust={"first": {"lookup": find, "timeout": 1, "visible_within": 0}})
    assert stage.finished(play(server, runs, one("first"))) == "done"
    assert text(runs) == "awake"


@pytest.mark.fault("server hangs")
def test_a_call_that_is_cut_off_while_its_server_starts_did_nothing(shop: Shop, runs: Path) -> None:
    """Nothing was sent yet, so no person is asked about it."""
    server = Server(shop.over_stdio(), trust={"pay": {"timeout": 0.2}})
    agent = stage.agent([one("pay", cents=5), "done"], *server.tools_sync())
    server.where = MUTE
    assert stage.finished(stage.on(str(runs), agent, clock=stage.Ticking())) == "done"
    assert [(did, after) for did, after, _ in ends(runs)] == [("nothing", 1.0)] * 3


@pytest.mark.fault("lease lost")
def test_a_call_is_not_sent_once_the_run_is_lost_while_its_server_starts(shop: Shop, runs: Path) -> None:
    """Starting a server takes long, and another process may carry the run on by then."""

    def starts() -> Any:
        (runs / "r" / "lock").unlink()
        return mcp.stdio_client(shop.over_stdio())

    server = Server(shop.over_stdio())
    agent = stage.agent([one("pay", cents=5), "done"], *server.tools_sync())
    server.where = starts
    with pytest.raises(eventlog.LockLost):
        stage.on(str(runs), agent)
    assert (ends(runs), shop.payments()) == ([], [])


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
