"""The README's test of one's own agent works as it stands, fails when the agent is wrong, and says how to repeat it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("## The sweep, for your own agent\n") :].partition("\n## ")[0]
(CODE,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
ONCE, WHERE = "@runner.tool\n", 'task="Write to Ada."'


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


def test_it_takes_fifteen_lines_at_most() -> None:
    """A promise to whoever has no time."""
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 15


def test_it_plays_the_one_scenario_that_is_asked_for(tmp_path: Path) -> None:
    """As it stands: the fixture is there without an import."""
    status, said = session(CODE, tmp_path, "--crash-only", "memory:30")
    assert status == 0, said


@pytest.mark.full
def test_it_passes_as_it_stands(tmp_path: Path) -> None:
    """All of it but the second crashes."""
    status, said = session(CODE.replace(WHERE, f"{WHERE}, pairs=0"), tmp_path)
    assert status == 0, said


def test_an_agent_that_repeats_fails_it_and_the_failure_can_be_repeated(tmp_path: Path) -> None:
    """The tool says that a repeat does no harm, and the count says otherwise."""
    wrong = CODE.replace(ONCE, '@runner.tool(effect="idempotent")\n')
    wrong = wrong.replace(WHERE, f'{WHERE}, modes=("memory",), pairs=0')
    status, said = session(wrong, tmp_path)
    assert status == 1, said
    assert "duplicates" in said
    again = re.search(r"repeat one of them with: pytest (\S+) --crash-only (\S+)", said)
    assert again is not None, said
    status, said = session(wrong, tmp_path, again[1], "--crash-only", again[2])
    assert status == 1
    assert f"failed: {again[2]}: " in said
    assert re.search(r"^memory +1 ", said, re.MULTILINE), said


def test_a_session_without_the_fixture_imports_nothing_of_ours(tmp_path: Path) -> None:
    """Every installed plugin is loaded, and whoever tests something else must not pay for this one."""
    names = "('eventlog', 'replay', 'runner')"
    code = f"import sys\n\ndef test_it():\n    assert not [name for name in {names} if name in sys.modules]\n"
    status, said = session(code, tmp_path)
    assert status == 0, said
