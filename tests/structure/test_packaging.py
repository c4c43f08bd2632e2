"""The wheel holds exactly eventlog, replay and runner, whole, and gives one command.

Three import names that are common words are already a risk to a user; a fourth that slipped in (`tests`, `benchmarks`)
would shadow somebody's own. And the triage data is no Python package, so a build could leave it out unnoticed.
"""

from __future__ import annotations

import configparser
import importlib
import subprocess
import sys
import zipfile
from email.parser import HeaderParser

import pytest

from tests.structure.sources import DATA, PACKAGES
from tests.support import ROOT

PLUGIN = "_refold_pytest.py"
"""Shipped beside the packages: pytest would import the whole of the one it was in."""

SCRIPT = "_refold_script.py"
"""The same for the command: it is there before `runner` is imported."""

SOURCES = {"runner/testing/_plugin.py", "runner/_cli/_script.py"}
LEAVINGS = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Build the wheel as an installer would, offline, and give its files: name to text."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode("utf-8", "replace") for name in archive.namelist()}


def _metadata(wheel: dict[str, str], name: str) -> str:
    (found,) = (text for path, text in wheel.items() if path.endswith(f".dist-info/{name}"))
    return found


def test_the_wheel_holds_exactly_the_three_packages_the_plugin_and_the_script(wheel: dict[str, str]) -> None:
    """Anything else at the top would be installed beside the user's own modules."""
    tops = {name.partition("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {*PACKAGES, PLUGIN, SCRIPT}


def test_the_wheel_holds_every_file_of_the_packages(wheel: dict[str, str]) -> None:
    """Data too: `refold triage` unpacks what the wheel brought, hidden files included."""
    tree = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and LEAVINGS.isdisjoint(path.parts)
    }
    assert {name for name in wheel if ".dist-info/" not in name} == (tree - SOURCES) | {PLUGIN, SCRIPT}
    assert any(name.startswith(f"{DATA}/") for name in tree)


def test_the_wheel_names_its_command_and_its_terms(wheel: dict[str, str]) -> None:
    """The README's first line to type is `refold`, on Python 3.11 or newer, under the MIT licence."""
    scripts = configparser.ConfigParser()
    scripts.read_string(_metadata(wheel, "entry_points.txt"))
    assert dict(scripts["console_scripts"]) == {"refold": f"{SCRIPT.removesuffix('.py')}:main"}
    assert dict(scripts["pytest11"]) == {"refold": PLUGIN.removesuffix(".py")}
    about = HeaderParser().parsestr(_metadata(wheel, "METADATA"))
    assert (about["Name"], about["Requires-Python"], about["License-Expression"]) == ("refold", ">=3.11", "MIT")
    assert any(name.endswith("/licenses/LICENSE") for name in wheel)


def test_the_wheel_asks_for_nothing_that_only_an_extra_needs(wheel: dict[str, str]) -> None:
    """A library that brings a web server into every agent is not installed twice."""
    wanted = HeaderParser().parsestr(_metadata(wheel, "METADATA")).get_all("Requires-Dist", [])
    plain = {line.partition(">")[0] for line in wanted if "extra ==" not in line}
    assert plain == {"click", "msgspec", "rich", "structlog"}


def test_the_command_can_be_called(wheel: dict[str, str]) -> None:
    """An entry point is a string; only importing it shows that it leads somewhere."""
    scripts = configparser.ConfigParser()
    scripts.read_string(_metadata(wheel, "entry_points.txt"))
    module, _, attribute = scripts["console_scripts"]["refold"].partition(":")
    assert callable(getattr(importlib.import_module(module), attribute))
