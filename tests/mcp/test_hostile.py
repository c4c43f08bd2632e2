"""Servers that list what no agent should take: refused in a sentence that names the server."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.mcp
from tests.mcp.playing import one, play, text
from tests.mcp.test_apart import sends, speaks
from tests.mcp.test_changed import Listed
from tests.support import stage
from tests.web import wire

OBJECT: dict[str, Any] = {"type": "object"}


def deep(levels: int) -> dict[str, Any]:
    """A schema of this depth."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"allOf": [schema]}
    return {"type": "object", "properties": {"x": schema}}


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("empty", {"name": ""}, "its name is empty"),
    ("blank", {"name": " \t"}, "its name is empty"),
    ("nul", {"name": "pay\0"}, "nobody sees"),
    ("escape", {"name": "pay\x1b[2J"}, "nobody sees"),
    ("invisible", {"name": "pa\u200by"}, "nobody sees"),
    ("long", {"name": "x" * 100_000}, "100000 characters"),
    ("twice", {"name": "other"}, "given to two tools"),
    ("deep", {"inputSchema": deep(40)}, "nested deeper than 64"),
    ("huge", {"inputSchema": OBJECT | {"properties": {f"p{n}": {"enum": ["x" * 100]} for n in range(9_000)}}}, "take"),
    ("long description", {"description": "x" * 300_000}, "take"),
]


@pytest.mark.fault("a hostile MCP server's list")
@pytest.mark.parametrize(("tool", "why"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_what_no_agent_can_use_is_refused_with_the_server_s_name(
    tool: dict[str, Any], why: str, tmp_path: Path
) -> None:
    """The sentence is short whatever was listed, and the tool that is in order is not taken without the other."""
    server = Listed(
        tmp_path / "tools.json", {"name": "other", "inputSchema": OBJECT}, {"name": "pay", "inputSchema": OBJECT} | tool
    )
    with pytest.raises(runner.BadTool, match=why) as refused:
        runner.mcp.Server(server.where, name="the bank").tools_sync()
    said = str(refused.value)
    assert "the MCP server the bank lists it" in said
    assert (len(said) < 300, said.isprintable()) == (True, True)


@pytest.mark.fault("a hostile MCP server's list")
@pytest.mark.parametrize(
    ("schema", "why"),
    [({"type": "array"}, "inputSchema.type: Input should be 'object'"), (deep(300), "recursion limit exceeded")],
    ids=["no object", "deeper than any reader reads"],
)
def test_what_the_protocol_does_not_know_is_refused_at_once(schema: dict[str, Any], why: str, tmp_path: Path) -> None:
    """In the same way, on one line; nobody waits for an answer that came and can't be read."""
    server = Listed(tmp_path / "tools.json", {"name": "pay", "inputSchema": schema})
    with pytest.raises(runner.mcp.ServerDown, match=why) as down:
        runner.mcp.Server(server.where, name="the bank").tools_sync()
    said = str(down.value)
    assert said.startswith("the MCP server the bank could not be reached: ")
    assert "what it said does not follow the protocol" in said
    assert (len(said) < 900, "\n" in said) == (True, False)


@pytest.mark.fault("an answer that can't be read is waited for")
@pytest.mark.parametrize("result", [None, "nothing", {"content": [{"type": "hologram"}]}], ids=str)
def test_an_answer_that_is_none_ends_its_call_at_once(result: Any, tmp_path: Path, runs: Path) -> None:
    """What the tool did is unknown, and another second of waiting would not tell."""
    server = Listed(tmp_path / "tools.json", {"name": "pay", "inputSchema": OBJECT})
    server.file.write_text(json.dumps(json.loads(server.file.read_text()) | {"result": result}))
    began = time.monotonic()
    (question,) = stage.asked(play(runner.mcp.Server(server.where, trust={"pay": {"timeout": 30}}), runs, one("pay")))
    assert (question.kind, server.calls()) == ("settle", 1)
    assert time.monotonic() - began < 15


@pytest.mark.fault("a line that is no text loses the answers after it")
def test_what_a_server_prints_for_people_is_passed_over_in_any_encoding(tmp_path: Path, runs: Path) -> None:
    """A log line in another encoding is no reason to ask a person about a payment."""
    server = Listed(tmp_path / "tools.json", {"name": "pay", "inputSchema": OBJECT})
    noise = b"started\n\xff\xfe\x00gr\xf6\xdfe\n{broken\n".hex()
    server.file.write_text(json.dumps(json.loads(server.file.read_text()) | {"before": noise}))
    assert stage.finished(play(runner.mcp.Server(server.where), runs, one("pay"))) == "done"
    assert text(runs) == "ok"


@pytest.mark.fault("an expensive pattern in a server's schema")
def test_a_pattern_that_takes_for_ever_is_left_to_the_server(tmp_path: Path, runs: Path) -> None:
    """It is never applied here, so the tool works."""
    schema = OBJECT | {"properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    server = Listed(tmp_path / "tools.json", {"name": "pay", "inputSchema": schema})
    outcome = play(runner.mcp.Server(server.where), runs, one("pay", x="a" * 60 + "!"))
    assert (stage.finished(outcome), text(runs), server.calls()) == ("done", "ok", 1)


@pytest.mark.fault("a list of tools without an end")
def test_a_server_that_lists_for_ever_is_given_up(tmp_path: Path) -> None:
    """A part of its tools would be taken for all of them."""
    server = Listed(tmp_path / "tools.json", {"name": "pay", "inputSchema": OBJECT})
    server.file.write_text(json.dumps(json.loads(server.file.read_text()) | {"nextCursor": "more"}))
    with pytest.raises(runner.mcp.ServerDown, match="its list of tools has more than 100 pages"):
        runner.mcp.Server(server.where).tools_sync()


@pytest.mark.fault("an answer that fills the memory")
@pytest.mark.parametrize(
    ("kind", "spaces", "how"),
    [
        ("application/json", 17 << 20, None),
        ("application/json", 2 << 20, "ran"),
        ("text/event-stream", 2 << 20, "ran"),
    ],
)
def test_an_answer_over_http_is_read_up_to_what_a_log_can_hold(
    kind: str, spaces: int, how: str | None, runs: Path
) -> None:
    """A picture may have a few mebibytes, in a stream, too; of what never ends the rest is left, and it is unknown."""

    def act(connection: wire.Connection, asked: Any) -> None:
        result = {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]}
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        data = f"data: {' ' * spaces}{body}\n\n" if kind == "text/event-stream" else f"{' ' * spaces}{body}"
        sends(connection, kind, data)

    with wire.service(speaks(act)) as service:
        outcome = play(runner.mcp.Server(service.url), runs, one("act"))
    assert [result.how for result in stage.results(runs).values()] == ([how] if how else [])
    assert isinstance(outcome, runner.Finished if how else runner.Paused)
