"""The examples about services keep their promise when a reply is lost: the effect is there once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import replay
import runner
from runner.testing import ScriptedModel, tool_calls
from tests.docs import documents
from tests.docs.examples import beside, executed
from tests.mcp.places import Shop
from tests.support import stage
from tests.web import wire

GUIDE = "runner/README.md"
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The names that the program of a section leaves."""
    return lambda title: executed(documents.section(GUIDE, title), tmp_path, monkeypatch).names


def run(tool: runner.Tool, runs: Path, **arguments: Any) -> replay.events.ResultRecorded:
    """One call of it, in a run that must finish; its result."""
    outcome = stage.start([tool_calls((tool.name, arguments)), "done"], tool, runs=runs, clock=stage.Ticking())
    assert stage.finished(outcome) == "done"
    return stage.results(runs)["1.0"]


def test_the_http_example_sends_the_key_again(example: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first answer is lost, and the second request carries the same key."""
    with wire.service(wire.says(b""), wire.answers(201, {"refund": 7}, [("connection", "close")])) as service:
        monkeypatch.setenv("API", service.url)
        result = run(example("HTTP")["refund"], tmp_path / "runs", order="o-1", cents=5)
    assert (result.how, result.text) == ("ran", '{"refund": 7}')
    assert service.keys == [stage.key(tmp_path / "runs", "1.0")] * 2
    assert [wire.sent(seen) for seen in service.seen] == [{"order": "o-1", "cents": 5}] * 2


def test_a_service_without_keys_is_asked_for_the_key(
    example: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The answer is lost; the lookup finds the issue when it must be visible, and it is not filed again."""
    filed: list[str] = []

    def manner(connection: wire.Connection) -> None:
        seen = connection.read()
        assert seen is not None
        if seen.method == "POST":
            filed.append(wire.sent(seen)["body"])
            connection.socket.close()
            return
        items = [
            {"id": n}
            for n, body in enumerate(filed)
            if stage.key(tmp_path / "runs", "1.0") in body and "/search?q=ref" in seen.path
        ]
        connection.socket.sendall(JSON + json.dumps({"items": items}).encode())
        connection.socket.close()

    with wire.service(manner) as service:
        monkeypatch.setenv("API", service.url)
        result = run(example("Services without keys")["file_issue"], tmp_path / "runs", title="t", body="b")
    assert (result.how, result.text) == ("found", '{"id": 0}')
    assert filed == [f"b\n\nref {stage.key(tmp_path / 'runs', '1.0')}"]


def test_what_is_missing_is_filed_again_only_after_visible_within(
    example: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The request never arrived; the run waits the two minutes that the example gives it, and then files it."""
    asked: list[str] = []

    def manner(connection: wire.Connection) -> None:
        seen = connection.read()
        assert seen is not None
        asked.append(seen.method)
        if asked != ["POST"]:
            connection.socket.sendall(JSON + (b'{"items": []}' if seen.method == "GET" else b'{"id": 1}'))
        connection.socket.close()

    with wire.service(manner) as service:
        monkeypatch.setenv("API", service.url)
        result = run(example("Services without keys")["file_issue"], tmp_path / "runs", title="t", body="b")
    assert result.text == '{"id": 1}'
    assert asked == ["POST", "GET", "GET", "POST"]
    (first, *_) = stage.events(tmp_path / "runs", replay.events.WaitUntil)
    assert (first.until - stage.NOON).total_seconds() >= 120


def test_the_mcp_example_pays_once(example: Any, shop: Shop, tmp_path: Path) -> None:
    """The shop dies after it was paid, and is not paid again."""
    beside(shop, tmp_path)
    agent: runner.Agent = example("MCP")["agent"]
    assert {tool.name: tool.effect for tool in agent.tools if tool.name in ("find", "pay", "slow")} == {
        "find": "reads",
        "pay": "keyed",
        "slow": "non_idempotent",
    }
    shop.trouble("after")
    agent = agent.replace(model=ScriptedModel([tool_calls(("pay", {"cents": 5})), "done"]))
    outcome = runner.start_sync(agent, "pay", runs=tmp_path / "runs", run="r", clock=stage.Ticking())
    assert stage.finished(outcome) == "done"
    assert shop.payments() == [(stage.key(tmp_path / "runs", "1.0"), 5, "")]
