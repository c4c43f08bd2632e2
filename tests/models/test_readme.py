"""The README's words on models, executed as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import runner
from tests.models import cases
from tests.models.dialects import DIALECTS, KEY, Said
from tests.models.server import Answer, Server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTIONS = {
    title: text
    for title, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## )", README, re.DOTALL | re.MULTILINE)
    if "```" in text
}


def code(title: str) -> str:
    """The example of a section."""
    (found,) = re.findall(r"^```python\n(.*?)^```", SECTIONS[title], re.DOTALL | re.MULTILINE)
    return str(found)


def played(program: str, where: Path, **environment: str) -> str:
    """What a program prints, run in a directory of its own."""
    environment |= {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    (where / "example.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=where,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("title", ["With Anthropic", "With OpenAI or a compatible server"])
def test_a_section_is_at_most_fifteen_lines(title: str) -> None:
    """It fits on a screen beside the reader's own code."""
    assert len([line for line in SECTIONS[title].splitlines() if line.strip() and not line.startswith("```")]) <= 15


def test_the_example_with_anthropic_runs(tmp_path: Path) -> None:
    """A tool call and an answer, the cache asked for, and a price known."""
    dialect = DIALECTS["anthropic"]
    call = Said(calls=(("c1", "weather", '{"city": "Oslo"}'),), stop="tool_calls")
    with Server(Answer(dialect.whole(call)), Answer(dialect.whole(Said(text="Sunny.")))) as server:
        assert played(code("With Anthropic"), tmp_path, ANTHROPIC_BASE_URL=server.url) == "Sunny.\n"
        for seen in server.seen:
            cases.lawful(dialect, seen)
            assert seen.json["cache_control"] == {"type": "ephemeral"}
        assert "sunny in Oslo" in json.dumps(server.seen[1].json)
    (listed,) = runner.listed(tmp_path / "runs")
    assert listed.state is not None
    assert listed.state.spent.unpriced == 0
    assert listed.state.spent.dollars > 0


def test_the_example_with_openai_and_a_compatible_server_runs(tmp_path: Path) -> None:
    """One protocol each, and a price for both."""
    answers = [
        Answer(DIALECTS[name].whole(Said(text=text))) for name, text in (("responses", "Two."), ("chat", "Three."))
    ]
    with Server(*answers) as server:
        urls = {"OPENAI_BASE_URL": f"{server.url}/v1", "LOCAL": f"{server.url}/v1"}
        assert played(code("With OpenAI or a compatible server"), tmp_path, **urls) == "Two.\nThree.\n"
        assert [seen.path for seen in server.seen] == ["/v1/responses", "/v1/chat/completions"]
    spent = [listed.state.spent for listed in runner.listed(tmp_path / "runs") if listed.state is not None]
    assert [one.unpriced for one in spent] == [0, 0]
