"""Places for the tests of runner: a directory of runs, a workspace, and the process whose children may die."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.stagehand import Stagehand


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs that does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty workspace."""
    path = tmp_path / "place"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def _theatre() -> Iterator[Stagehand]:
    with Stagehand() as hand:
        yield hand


@pytest.fixture
def stagehand(_theatre: Stagehand, tmp_path: Path) -> Stagehand:
    """Somebody who plays scenes in processes of their own."""
    _theatre.room = tmp_path
    return _theatre
