"""A death at any point: every effect once, every call one result, no saved reply paid twice."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import scenes
from tests.support.forkserver import ForkServer

MEMORY = Path("/dev/shm")  # noqa: S108 (looked for, never relied on)


@pytest.fixture
def root() -> Iterator[Path]:
    """A place in memory where there is one: a killed process loses nothing that it wrote, on any file system."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


def test_the_points_are_where_deaths_can_land(forks: ForkServer, root: Path) -> None:
    """A sweep that misses lines, tool bodies, asks, questions or the log's own files would prove little."""
    passed = forks.run(scenes.points, root=root / "job").value
    assert sum(point.startswith("line ") for point in passed) >= 14
    for part in ("begins", "ends", "ask goes out", "reply came in", "question is put", "os.rename", "os.mkdir"):
        assert any(part in point for point in passed), (part, passed)


@pytest.mark.parametrize("first", [1, 2])
def test_a_death_at_any_point_repeats_and_loses_nothing(forks: ForkServer, root: Path, first: int) -> None:
    """One death anywhere, one resume: everything outside is as if nobody had died."""
    swept = forks.run(scenes.sweep, root=root, first=first, step=2).value
    assert swept["wrong"] == {}
    assert swept["points"] > 50


def test_a_second_death_during_the_resume_repeats_and_loses_nothing(forks: ForkServer, root: Path) -> None:
    """The same with the resume killed too, at a point that varies with the first; every other point, for time."""
    swept = forks.run(scenes.sweep, root=root, first=1, step=2, again=29).value
    assert swept["wrong"] == {}
    assert swept["points"] > 50
