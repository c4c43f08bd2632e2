"""What the README says of a deploy is true: its commands, as they stand, on its first agent."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Refold

README = (ROOT / "README.md").read_text(encoding="utf-8")


def _block(section: str, language: str) -> str:
    rest = README[README.index(section) :]
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", rest, re.DOTALL | re.MULTILINE)
    return found[0]


def test_the_commands_before_a_deploy_do_what_they_say(
    refold: Refold, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the directory of a user's agent, one after the other."""
    (tmp_path / "post.py").write_text(_block("## Your first durable agent", "python"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "post", raising=False)
    assert refold("run", "--agent", "post:agent", "Write to Ada.").status == 0
    (run,) = (entry.name for entry in runs.iterdir())
    commands = [shlex.split(line, comments=True) for line in _block("## Before a deploy", "sh").splitlines()]
    assert [command[:2] for command in commands] == [["refold", name] for name in ("preflight", "retrace", "export")]
    for command in commands:
        said = refold(*(run if word == "RUN" else word for word in command[1:]))
        assert (said.status, "Traceback" in said.err) == (0, False), said.err
    assert (tmp_path / "test_run.py").is_file()
    monkeypatch.delitem(sys.modules, "post")
