"""The look before every write: how many names a file has, and how long it is, without asking for its times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eventlog import _disk, _disk_look


@pytest.fixture(params=[True, False], ids=["statx", "without statx"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _disk.Disk:
    """The system's disk, on a system with that call and on one without it."""
    if not request.param:
        monkeypatch.setattr(_disk_look, "_statx", lambda: None)
    return _disk.Disk()


def test_names_and_size_are_those_of_the_open_file(disk: _disk.Disk, tmp_path: Path) -> None:
    """Linked, grown beyond four gigabytes, deleted: what a writer must find out before it writes."""
    path = tmp_path / "file"
    fd = disk.open(path, write=True, new=True)
    try:
        disk.pwrite(fd, b"seven b", 0)
        assert disk.links_and_size(fd) == (1, 7)
        os.link(path, tmp_path / "other")
        disk.truncate(fd, 5 << 30)
        assert disk.links_and_size(fd) == (2, 5 << 30)
        (tmp_path / "other").unlink()
        path.unlink()
        assert disk.links_and_size(fd) == (0, 5 << 30)
    finally:
        disk.close(fd)


def test_a_file_that_is_not_open_is_an_error(disk: _disk.Disk) -> None:
    """A writer that can't look must not write."""
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.links_and_size(-1)
