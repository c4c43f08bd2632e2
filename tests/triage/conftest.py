"""One finished run of the job for each test process, and no tracker left behind by any test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.triage import worlds


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[worlds.Done]:
    """A run that nothing interrupted; not to be changed: copy it."""
    place = tmp_path_factory.mktemp("finished")
    yield worlds.finish(place / "runs")
    worlds.end_trackers(place)


@pytest.fixture(autouse=True)
def _no_tracker_left(tmp_path: Path) -> Iterator[None]:
    """A tracker outlives its starter by design; a test's must not."""
    yield
    worlds.end_trackers(tmp_path)
