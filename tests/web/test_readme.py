"""The README's sections on HTTP services hold code that works as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import replay
import runner
from tests.runner import stage
from tests.web import wire

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"


def example(title: str) -> str:
    """The code of a section."""
    section = README[README.index(f"## {title}\n") :].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return str(code)


def executed(code: str) -> dict[str, Any]:
    """The names that it leaves."""
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 (our own words)
    return names


def run(tool: runner.Tool, runs: Path, **arguments: Any) -> replay.ResultRecorded:
    """One call of it, in a run that must finish; its result."""
    outcome = stage.start([runner.calls((tool.name, arguments)), "done"], tool, runs=runs, clock=stage.Ticking())
    assert stage.finished(outcome) == "done"
    return stage.results(runs)["1.0"]


def test_with_your_http_api_is_short_and_sends_the_key_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fifteen lines that a reader copies; the first answer is lost, and the second request carries the same key."""
    code = example("With your HTTP API")
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    with wire.service(wire.says(b""), wire.answers(201, {"refund": 7}, [("connection", "close")])) as service:
        monkeypatch.setenv("API", service.url)
        result = run(executed(code)["refund"], tmp_path / "runs", order="o-1", cents=5)
    assert (result.how, result.text) == ("ran", '{"refund": 7}')
    assert service.keys == [runner.key("r", "1.0")] * 2
    assert [wire.sent(seen) for seen in service.seen] == [{"order": "o-1", "cents": 5}] * 2


def test_a_service_without_keys_is_asked_for_the_marker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The answer is lost; the lookup, once `lands_within` has passed, finds the issue, and it is not filed again."""
    filed: list[str] = []

    def manner(connection: wire.Connection) -> None:
        seen = connection.read()
        assert seen is not None
        if seen.method == "POST":
            filed.append(wire.sent(seen)["body"])
            connection.socket.close()
            return
        items = [
            {"id": n} for n, body in enumerate(filed) if runner.key("r", "1.0") in body and "/search?q=ref" in seen.path
        ]
        body = json.dumps({"items": items}).encode()
        connection.socket.sendall(JSON + body)
        connection.socket.close()

    with wire.service(manner) as service:
        monkeypatch.setenv("API", service.url)
        result = run(
            executed(example("When a service keeps no keys"))["file_issue"], tmp_path / "runs", title="t", body="b"
        )
    assert (result.how, result.text) == ("found", '{"id": 0}')
    assert filed == [f"b\n\nref {runner.key('r', '1.0')}"]


def test_a_marker_that_is_not_there_is_filed_again_only_after_lands_within(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The request never arrived; the run waits the two minutes that the recipe gives it, and then files it."""
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
        tool = executed(example("When a service keeps no keys"))["file_issue"]
        result = run(tool, tmp_path / "runs", title="t", body="b")
    assert result.text == '{"id": 1}'
    assert asked == ["POST", "GET", "GET", "POST"]
    waits = stage.events(tmp_path / "runs", replay.WaitUntil)
    assert [(wait.why, (wait.until - stage.NOON).total_seconds() >= 120) for wait in waits[:1]] == [("lands", True)]
