"""What is printed is right in every locale and moves no terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import runner
from tests.cli import agents
from tests.cli.conftest import Agent, Refold, environment


def test_commands_speak_in_a_locale_that_lacks_the_letters(process: Refold, refold: Refold, runs: Path) -> None:
    """A letter that can't be printed is printed by its number: losing a page over it would be worse."""
    task = "\u4f60\u597d \u00e9"
    locale = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    runner.start_sync(agents.plain, task, runs=runs, run="a-run")
    said = process("show", "a-run", env=locale)
    assert (said.status, said.err) == (0, "")
    assert "\\u4f60\\u597d \\xe9" in said.out
    assert process("run", task, Agent("plain"), env=locale).status == 0
    printed = refold("show", "a-run", "--json").out
    assert printed.isascii()
    assert json.loads(printed)["task"] == task
    assert process("cat", "a-run", env=locale).out.encode() == (runs / "a-run" / "seg-000001.jsonl").read_bytes()


def test_nothing_needs_a_home(runs: Path, tmp_path: Path) -> None:
    """A container and a service manager often give none."""
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": environment()["PYTHONPATH"]}
    for words in (["run", "pay", str(Agent("paying"))], ["ls"]):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "runner._cli", *words, "--runs", str(runs)],
            env=bare,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == (3 if words[0] == "run" else 0), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_the_runs_directory_is_the_options_then_the_environments_then_runs(
    refold: Refold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three places, in this order, for every command."""
    for name in ("given", "env", "runs"):
        runner.start_sync(agents.plain, "look", runs=tmp_path / name, run=f"{name}-run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFOLD_RUNS", "env")
    assert "given-run" in refold("ls", "--runs", "given").out
    assert "env-run" in refold("ls").out
    monkeypatch.setenv("REFOLD_RUNS", "")
    assert "runs-run" in refold("ls").out


def test_progress_never_prints_what_a_terminal_obeys(refold: Refold) -> None:
    """The plain lines too end up on somebody's screen."""
    said = refold("run", "shout", Agent("loud")).ends(0)
    for text in (said.out, said.err):
        assert "\x1b" not in text
        assert "\x9b" not in text
        assert "\\x1b[31mred" in text
