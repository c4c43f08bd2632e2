"""A place for runs, and workers that do not wait as long as outside."""

from pathlib import Path

import pytest

from runner._service import carrier, resources, worker


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs that does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that look at all runs often, and soon try again what failed."""
    monkeypatch.setattr(worker, "LOOK", 0.1)
    monkeypatch.setattr(worker, "SOON", 0.02)
    monkeypatch.setattr(worker, "TICK", 0.02)
    monkeypatch.setattr(carrier, "AGAIN", (0.3,))
    monkeypatch.setattr(resources, "FIRST", 0.1)
