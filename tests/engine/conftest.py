"""Places for the tests of runner: a directory of runs and a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest


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
