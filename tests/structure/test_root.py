"""The root of the repository holds what its contract names, and nothing else.

Whoever opens the project sees the house at a glance: three packages, their tests, how to build. Notes, dumps and the
settings of somebody's editor belong elsewhere.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support import ROOT

CONTRACT = {
    ".ci", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "benchmarks",
    "eventlog", "pyproject.toml", "replay", "runner", "tests",
}  # fmt: skip


def _git(*arguments: str, cwd: Path) -> str:
    """Run git without the variables that a hook sets, which would point it at another repository."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(["git", *arguments], cwd=cwd, env=own, capture_output=True, text=True, check=True).stdout


def _strangers(root: Path, scratch: Path) -> set[str]:
    """Give the root's entries that the contract does not name: of what git tracks.

    In a copy that is no repository, of everything that .gitignore does not name.
    """
    listing = ["ls-files", "-z"]
    if not (root / ".git").exists():
        _git("init", "--quiet", "--bare", str(scratch), cwd=root)
        listing = [f"--git-dir={scratch}", f"--work-tree={root}", *listing, "--others", "--exclude-standard"]
    return {name.partition("/")[0] for name in _git(*listing, cwd=root).split("\0") if name} - CONTRACT


def test_the_root_holds_only_what_its_contract_names(tmp_path: Path) -> None:
    """A stray file in the root is the first thing a reader sees."""
    assert _strangers(ROOT, tmp_path / "scratch") == set()


def test_a_stray_file_in_the_root_is_named(tmp_path: Path) -> None:
    """The listing must see hidden files and folders, and leave out what is ignored."""
    root = tmp_path / "root"
    for name in ("README.md", "notes.txt", ".editor/settings", "runner/notes.txt", "cache/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("", encoding="utf-8")
    (root / ".gitignore").write_text("/cache/\n", encoding="utf-8")
    assert _strangers(root, tmp_path / "scratch") == {"notes.txt", ".editor"}
    _git("init", "--quiet", cwd=root)
    assert _strangers(root, tmp_path / "scratch") == set()
    _git("add", "notes.txt", cwd=root)
    assert _strangers(root, tmp_path / "scratch") == {"notes.txt"}
