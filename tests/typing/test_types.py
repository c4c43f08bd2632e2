"""The installed packages under mypy --strict and pyright: what users write is accepted, mistakes are found.

The checkers see the wheel, as a user's would: without `py.typed` in it they would believe nothing that it declares.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs import documents
from tests.support import ROOT
from tests.typing import embedding

HERE = Path(__file__).parent
PYRIGHT = {"typeCheckingMode": "strict", "reportUnusedExpression": False, "reportUnusedCoroutine": False}
UNTYPED = {"In a Celery task", "Plain Python", "LangChain", "openai-agents, a recipe"}
"""Programs that use a library whose types no strict checker accepts, or leave types out."""
Errors = dict[str, dict[int, str]]
"""The first error of each line, by file."""


class Environment(NamedTuple):
    """A virtual environment with the wheel, and the programs to check."""

    python: Path
    programs: Path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel installed, beside what it depends on; the programs of this folder and of every document."""
    root = tmp_path_factory.mktemp("types")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(root)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    venv.create(root / "venv")
    (packages,) = (root / "venv").glob("lib/*/site-packages")
    (wheel,) = root.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    programs = root / "programs"
    programs.mkdir()
    for name in ("accepted.py", "refused.py", "embedding.py"):
        shutil.copy(HERE / name, programs)
    for section in documents.everywhere("python"):
        if section.title in UNTYPED:
            continue
        (programs / f"{re.sub(r'[^a-z]+', '_', section.name.lower())}.py").write_text(section.program)
    return Environment(root / "venv/bin/python", programs)


@pytest.fixture(scope="module")
def by_mypy(environment: Environment) -> Errors:
    """What mypy finds, with our own settings: so it begins with what `make types` has read of packages, if that ran.

    What it reads it keeps by its content, for the next run on any interpreter.
    """
    kept, types = ROOT / ".mypy_cache" / "programs", ROOT / ".mypy_cache" / "3.11"
    if types.exists() and not kept.exists():
        shutil.copytree(types, kept / types.name)
    options = ["--strict", "--hide-error-context", "--python-executable", str(environment.python)]
    ours = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(kept)]
    command = [sys.executable, "-m", "mypy", *options, *ours, "."]
    said = subprocess.run(command, cwd=environment.programs, capture_output=True, text=True, check=False)
    assert said.stderr == ""
    found: Errors = {}
    for name, line, text in re.findall(r"^(\w+\.py):(\d+): error: (.*)$", said.stdout, re.MULTILINE):
        found.setdefault(name, {}).setdefault(int(line), text)
    return found


@pytest.fixture(scope="module")
def by_pyright(environment: Environment) -> Errors:
    """What pyright finds."""
    (environment.programs / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    command = [sys.executable, "-m", "pyright", "--pythonpath", str(environment.python), "--outputjson"]
    said = subprocess.run(command, cwd=environment.programs, capture_output=True, text=True, check=False)
    found: Errors = {}
    for one in json.loads(said.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            found.setdefault(Path(one["file"]).name, {}).setdefault(line, one["message"])
    return found


def _marked() -> set[int]:
    lines = (HERE / "refused.py").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# E")}


@pytest.mark.early
def test_mypy_finds_every_mistake_and_nothing_else(by_mypy: Errors) -> None:
    """Every example of every document, the embedding program and the accepted programs are without an error."""
    refused = by_mypy.pop("refused.py", {})
    assert by_mypy == {}
    assert set(refused) == _marked()
    assert len(refused) > 30


@pytest.mark.full
def test_pyright_finds_every_mistake_and_nothing_else_in_our_own_programs(by_pyright: Errors) -> None:
    """Two checkers disagree about much; a declaration that only one of them understands is none."""
    refused = by_pyright.pop("refused.py", {})
    assert {name: found for name, found in by_pyright.items() if name in ("accepted.py", "embedding.py")} == {}
    assert set(refused) == _marked()


def test_the_embedding_program_does_what_its_types_say(tmp_path: Path) -> None:
    """A program that only a checker has read may be nonsense."""
    assert asyncio.run(embedding.main(tmp_path)) == ["waiting for send", "Sent."]
