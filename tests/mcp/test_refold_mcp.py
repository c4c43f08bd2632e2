"""`refold mcp`: an assistant can read what a run did, in an old protocol and a new one, and can change nothing."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp
import pytest

import runner
import runner.testing
from runner._cli._commands.mcp import OFFERED, server
from tests.support import ROOT, stage

READS = {"ls", "show", "verify"}


@runner.tool
def pay(invoice: str) -> str:
    """Pay an invoice."""
    return f"paid {invoice}"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: one done, one that waits for a person."""
    runs = tmp_path / "runs"
    stage.start(
        [runner.testing.tool_calls(("pay", {"invoice": "i-7"})), "Invoice i-7 is paid."], pay, runs=runs, run="done"
    )

    @runner.tool(name="pay", approval=True)
    def careful(invoice: str) -> str:
        """Pay an invoice."""
        return f"paid {invoice}"

    stage.start([runner.testing.tool_calls(("pay", {"invoice": "i-8"}))], careful, runs=runs, run="waits")
    return runs


def contents(runs: Path) -> dict[str, bytes]:
    """Every file of a directory."""
    return {str(path.relative_to(runs)): path.read_bytes() for path in runs.rglob("*") if path.is_file()}


def asked(runs: Path, ask: Callable[[mcp.Client], Awaitable[Any]], mode: str, *, apart: bool) -> Any:
    """What a client hears from the command in a process of its own, or from the same server in this one."""
    words = ["-m", "runner._cli", "mcp", "--runs", str(runs)]
    place = mcp.StdioServerParameters(command=sys.executable, args=words, cwd=ROOT) if apart else server(str(runs))

    async def all_of_it() -> Any:
        async with mcp.Client(place, mode=mode) as client:
            return await ask(client)

    return asyncio.run(all_of_it())


@pytest.mark.parametrize(("mode", "apart"), [("legacy", False), ("2026-07-28", True)])
def test_an_old_and_a_new_client_read_what_a_run_did(mode: str, runs: Path, *, apart: bool) -> None:
    """The same tools, and the JSON that the commands print; the directory is as it was."""
    before = contents(runs)

    async def ask(client: mcp.Client) -> dict[str, Any]:
        tools = (await client.list_tools()).tools
        listed = await client.call_tool("ls", {})
        shown = await client.call_tool("show", {"run": "waits"})
        wrong = await client.call_tool("show", {"run": "nope"})
        return {"tools": tools, "ls": listed, "show": shown, "wrong": wrong, "version": client.protocol_version}

    heard = asked(runs, ask, mode, apart=apart)
    assert {tool.name for tool in heard["tools"]} >= READS
    assert all(tool.annotations.read_only_hint for tool in heard["tools"])
    assert {row["run"]: row["phase"] for row in _json(heard["ls"])} == {"done": "done", "waits": "paused"}
    assert _json(heard["show"])["waiting"][0]["arguments"] == '{"invoice": "i-8"}'
    assert heard["wrong"].is_error
    assert "nope" in heard["wrong"].content[0].text
    assert (heard["version"] == "2026-07-28") is (mode != "legacy")
    assert contents(runs) == before


@pytest.mark.fault("an answer that fills an assistant's memory")
def test_an_answer_is_bounded_and_masked(runs: Path) -> None:
    """One run's result of 20 MB, with a key in it, must not reach an assistant as it is."""
    secret = "sk-" + "a1B2" * 12

    @runner.tool(name="pay")
    def loud(invoice: str) -> str:
        """Pay an invoice."""
        return f"{secret} {invoice}" + "x" * 2_000_000

    script = [runner.testing.tool_calls(("pay", {"invoice": f"password=hunter22 {secret}"})), "y" * 2_000_000]
    stage.start(script, loud, runs=runs, run="loud")

    async def ask(client: mcp.Client) -> list[Any]:
        about = [await client.call_tool(name, {"run": "loud"}) for name in ("show", "audit", "verify")]
        return [await client.call_tool("ls", {}), *about]

    for heard in asked(runs, ask, "legacy", apart=False):
        text = heard.content[0].text
        assert len(text) < 200_000
        assert secret not in text
        assert "hunter22" not in text
        assert json.loads(text)


def test_what_was_cut_says_how_long_it_was(runs: Path) -> None:
    """However often it had to be cut until the answer was short enough."""

    @runner.tool(name="pay", effect="reads")
    def wordy(invoice: str) -> str:
        """Pay an invoice."""
        return "x" * 5_000 + invoice

    script = [runner.testing.tool_calls(*(("pay", {"invoice": f"{n:02}"}) for n in range(30))), "over"]
    stage.start(script, wordy, runs=runs, run="wordy")
    assert _text(inside(runs, "audit", run="wordy")).count("[cut: 5,002 characters]") == 30


def test_a_client_of_the_first_protocol_is_understood(runs: Path) -> None:
    """Written out by hand, as a client of 2024 sends it."""
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "show", "arguments": {"run": "done"}}},
    ]  # fmt: skip
    words = [sys.executable, "-m", "runner._cli", "mcp", "--runs", str(runs)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        answers = {
            answer["id"]: answer["result"] for answer in map(json.loads, [process.stdout.readline() for _ in "12"])
        }
        process.stdin.close()
        assert process.wait(90) == 0
    assert answers[1]["protocolVersion"] == "2024-11-05"
    assert json.loads(answers[2]["content"][0]["text"])["answer"] == "Invoice i-7 is paid."


def inside(runs: Path, tool: str, **arguments: str) -> mcp.types.CallToolResult:
    """One call to the same server, in this process."""

    async def ask() -> mcp.types.CallToolResult:
        async with mcp.Client(server(str(runs))) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(ask())


def test_only_commands_that_read_are_offered(runs: Path) -> None:
    """Whatever the command line learns, writing is not for an assistant."""

    async def names() -> set[str]:
        async with mcp.Client(server(str(runs))) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert READS <= asyncio.run(names()) <= set(OFFERED)
    assert not {"approve", "refuse", "settle", "stop", "resume", "run", "compact", "salvage", "fork"} & set(OFFERED)


@pytest.mark.parametrize("run", ["../runs", "--help", "-rf", "", "a/b", "\0"])
def test_a_name_that_is_no_run_s_gets_a_sentence(run: str, runs: Path) -> None:
    """It comes from a model: it must not become an option, or leave the directory."""
    before = contents(runs)
    answer = inside(runs, "show", run=run)
    assert answer.is_error
    assert "Traceback" not in _text(answer)
    assert contents(runs) == before


def test_a_damaged_log_is_an_answer_marked_as_one(runs: Path) -> None:
    """What `refold verify` prints about it, with its exit status as the mark."""
    segment = next((runs / "done").glob("seg-*"))
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    answer = inside(runs, "verify", run="done")
    assert answer.is_error
    assert json.loads(_text(answer))["ok"] is False
    assert "damaged" in _text(inside(runs, "show", run="done"))


def test_without_the_sdk_the_command_says_what_to_install(runs: Path) -> None:
    """It is an extra."""
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'mcp' else find(name, *a)\n"
        "from runner._cli import main; main(['mcp', '--runs', sys.argv[1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(runs)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'refold[mcp]'" in done.stderr


def _text(answer: mcp.types.CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, mcp.types.TextContent)
    return block.text


def _json(answer: mcp.types.CallToolResult) -> Any:
    assert not answer.is_error, answer
    return json.loads(_text(answer))
