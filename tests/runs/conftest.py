"""Places for the tests of forks."""

from pathlib import Path

import pytest

from tests.runs.scenes import Shop


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs that does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def shop() -> Shop:
    """Outside systems where nothing has happened."""
    return Shop()
