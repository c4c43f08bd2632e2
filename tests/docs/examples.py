"""Runs the program of a section as it stands, in a directory of its own."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.docs.documents import Section
from tests.mcp.places import Shop


class Executed(NamedTuple):
    """The names that a program left, and what it printed."""

    names: dict[str, Any]
    printed: str


def executed(section: Section, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Executed:
    """Run a section's program as a script without arguments would be run in `directory`."""
    directory.mkdir(exist_ok=True)
    monkeypatch.chdir(directory)
    monkeypatch.setattr("sys.argv", ["example.py"])
    names: dict[str, Any] = {"__name__": "__main__"}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(section.program, section.name, "exec"), names)  # noqa: S102 (our own documents)
    return Executed(names, out.getvalue())


def beside(shop: Shop, directory: Path) -> None:
    """Put `shop.py` there: the server that an example starts is then this shop."""
    connect = shop.over_stdio()
    (directory / "shop.py").write_text(f"import sys\nsys.argv[1:] = {connect.args[-2:]!r}\n{connect.args[-3]}")
