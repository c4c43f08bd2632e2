"""The look before every write: how many names a file has, and how long it is, without asking for its times.

And the number that an open file gets.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _descriptor, _disk
from tests.eventlog.making import AT, OPENING, event, numbers

if TYPE_CHECKING:
    from tests.support.forkserver import ForkServer


@pytest.fixture(params=[True, False], ids=["statx", "without statx"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _disk.Disk:
    """The system's disk, on a system with that call and on one without it."""
    if not request.param:
        monkeypatch.setattr(_descriptor, "_statx", lambda: None)
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


def warns_where_stderr_was(runs: str) -> None:
    """Write a log in a process without standard files, in which a library writes to each of them."""
    kept = [os.dup(fd) for fd in range(3)]
    for fd in range(3):
        os.close(fd)
    with eventlog.store(runs).create("r", at=AT, events=[OPENING]) as log:
        for fd in range(3):
            with contextlib.suppress(OSError):
                os.write(fd, b"Warning: a library says something\n")
        log.append(AT, [event(1)])
    for fd, file in enumerate(kept):
        os.dup2(file, fd)


def test_a_warning_of_a_library_is_never_written_into_a_log(tmp_path: Path, forks: ForkServer) -> None:
    """A daemon may have closed stderr, and then the next file that is opened gets its number."""
    assert forks.run(warns_where_stderr_was, runs=tmp_path).status == 0
    assert eventlog.store(tmp_path).verify("r").ok
    assert numbers(tmp_path) == [0, 1, 2]


def opens_with_few_descriptors(runs: str) -> list[str]:
    """Open a run with no descriptor left, with one, and so on until it works; give what could not be used each time."""
    eventlog.store(runs).create("r", at=AT, events=[OPENING]).close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    held, named = list[int](), list[str]()
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    while True:
        try:
            eventlog.store(runs).open("r").abandon()
        except eventlog.DiskFailed as error:
            named.append(error.path)
        else:
            return named
        os.close(held.pop())


def test_what_cannot_be_opened_is_named_by_its_whole_path(tmp_path: Path, forks: ForkServer) -> None:
    """A file is reached within its directory, and the system then names no more than its last part."""
    named = forks.run(opens_with_few_descriptors, runs=tmp_path).value
    assert tmp_path / "r" in {Path(name).parent for name in named}
    assert all(Path(name).is_relative_to(tmp_path) for name in named)
