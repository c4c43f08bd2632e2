"""The README's section on MCP holds code that works as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import runner
from tests.mcp.places import Shop
from tests.runner import stage
from tests.web.test_readme import example, executed


def test_with_mcp_is_short_and_pays_once(shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fifteen lines that a reader copies: the shop dies after it paid, and is not paid again."""
    code = example("With MCP")
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    connect = shop.over_stdio()
    (tmp_path / "shop.py").write_text(f"import sys\nsys.argv[1:] = {connect.args[-2:]!r}\n{connect.args[-3]}")
    monkeypatch.chdir(tmp_path)
    agent: runner.Agent = executed(code)["agent"]
    assert {tool.name: tool.effect for tool in agent.tools if tool.name in ("find", "pay", "slow")} == {
        "find": "reads",
        "pay": "keyed",
        "slow": "once",
    }
    shop.trouble("after")
    agent = agent.replace(model=runner.ScriptedModel([runner.calls(("pay", {"cents": 5})), "done"]))
    outcome = runner.start_sync(agent, "pay", runs=tmp_path / "runs", run="r", clock=stage.Ticking())
    assert stage.finished(outcome) == "done"
    assert shop.payments() == [(runner.key("r", "1.0"), 5, "")]
