"""The README's first agent does what the README says: killed, resumed, looked at before a deploy, swept for crashes."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import eventlog
from tests.cli.conftest import Refold, refold, runs
from tests.docs import documents

__all__ = ["refold", "runs"]  # fixtures

FIRST = documents.section("README.md", "Your first durable agent")
(CODE,) = FIRST.blocks("python")
(COMMANDS,) = FIRST.blocks("sh")
SWEPT = documents.section("runner/README.md", "Crash tests").program
CAREFUL, TASK = "@runner.tool\n", 'task="Write to Ada."'


def _lines(text: str) -> int:
    return len([line for line in text.splitlines() if line.strip()])


def test_it_takes_forty_lines_at_most() -> None:
    """Somebody who has never seen refold types it in."""
    assert _lines(CODE) + _lines(COMMANDS) <= 40


def test_it_is_killed_and_resumed(tmp_path: Path) -> None:
    """Every command as it stands, one after another."""
    (tmp_path / "post.py").write_text(CODE, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = [
        subprocess.run(
            ["bash", "-c", f"exec env {command}"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        for command in COMMANDS.splitlines()
    ]
    assert [each.returncode for each in done] == [-9, 0, 0, 0], [each.stderr for each in done]
    assert " tools " in done[1].stdout
    assert done[2].stdout == "Ada has her letter.\n"
    assert len(done[3].stdout.split()) == 1


def test_the_commands_before_a_deploy_work_on_it(
    refold: Refold, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the directory of a user's agent, one after the other."""
    (tmp_path / "post.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "post", raising=False)
    assert refold("run", "--agent", "post:agent", "Write to Ada.").status == 0
    (run,) = eventlog.store(runs).names()
    (block,) = documents.section("runner/README.md", "Before a deploy").blocks("sh")
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [command[:2] for command in commands] == [["refold", name] for name in ("preflight", "retrace", "export")]
    for command in commands:
        said = refold(*(run if word == "RUN" else word for word in command[1:]))
        assert (said.status, "Traceback" in said.err) == (0, False), said.err
    assert (tmp_path / "test_run.py").is_file()
    monkeypatch.delitem(sys.modules, "post")


def session(code: str, place: Path, *words: str) -> tuple[int, str]:
    """Run the code as a test in a session of its own, with no other plugin than ours; its status, what it said."""
    (place / "test_mine.py").write_text(code, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others take longer to load than all of this takes to run
    (plugin,) = importlib.metadata.entry_points(group="pytest11", name="refold")
    ours = ["-p", plugin.value, "-p", "no:cacheprovider", "-W", "error", "--color=no"]
    command = [sys.executable, "-m", "pytest", "-q", *ours, *words]
    done = subprocess.run(command, cwd=place, env=kept, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_crash_test_takes_seventeen_lines_at_most() -> None:
    """A promise to whoever has no time."""
    assert _lines(SWEPT) <= 17


def test_the_crash_test_plays_the_one_scenario_that_is_asked_for(tmp_path: Path) -> None:
    """As it stands: the fixture is there without an import."""
    status, said = session(SWEPT, tmp_path, "--crash-only", "memory:30")
    assert status == 0, said


@pytest.mark.full
def test_the_crash_test_passes_as_it_stands(tmp_path: Path) -> None:
    """All of it but the second crashes."""
    status, said = session(SWEPT.replace(TASK, f"{TASK}, pairs=0"), tmp_path)
    assert status == 0, said


def test_the_crash_test_of_an_agent_that_repeats_fails_and_can_be_repeated(tmp_path: Path) -> None:
    """The tool declares that a repeat does no harm, and the count says otherwise."""
    wrong = SWEPT.replace(CAREFUL, '@runner.tool(effect="idempotent")\n')
    wrong = wrong.replace(TASK, f'{TASK}, modes=("memory",), pairs=0')
    status, said = session(wrong, tmp_path)
    assert status == 1, said
    assert "letters +1" in said
    again = re.search(r"repeat one of them with: pytest (\S+) --crash-only (\S+)", said)
    assert again is not None, said
    status, said = session(wrong, tmp_path, again[1], "--crash-only", again[2])
    assert status == 1
    assert f"    {again[2]}: " in said
    assert re.search(r"^memory +1 ", said, re.MULTILINE), said


def test_a_session_without_the_fixture_imports_nothing_of_ours(tmp_path: Path) -> None:
    """Every installed plugin is loaded, and whoever tests something else must not pay for this one."""
    names = "('eventlog', 'replay', 'runner')"
    code = f"import sys\n\ndef test_it():\n    assert not [name for name in {names} if name in sys.modules]\n"
    status, said = session(code, tmp_path)
    assert status == 0, said
