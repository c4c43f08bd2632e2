"""A place for runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog import Directory
from tests.support.disks import Quick


@pytest.fixture
def runs(tmp_path: Path) -> Directory:
    """Where the runs of a test live; nothing is synced, since nothing loses power."""
    return Directory(tmp_path / "runs", disk=Quick())
