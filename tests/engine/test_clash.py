"""The names of the packages are common words: a file of the same name is named, wherever code of ours still runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def _fails(directory: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("package", ["eventlog", "replay"])
def test_a_programs_own_file_of_the_same_name_is_named(package: str, tmp_path: Path) -> None:
    """A mystery far from its cause would be blamed on us, rightly."""
    (tmp_path / "mine.py").write_text("import runner\n")
    (tmp_path / f"{package}.py").write_text("")
    assert f"the package {package} that Python imports is {tmp_path}" in _fails(tmp_path, "mine.py")


def test_a_programs_own_runner_is_named_by_the_fixture(tmp_path: Path) -> None:
    """Nothing of the package runs then but the plugin."""
    (tmp_path / "runner.py").write_text("")
    (tmp_path / "test_mine.py").write_text("def test(crash_sweep): pass\n")
    said = _fails(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
    assert f"the package runner that Python imports is {tmp_path / 'runner.py'}, not refold's" in said
