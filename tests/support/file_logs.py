"""Logs of directories, for tests of what only they have: segments, files, a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from eventlog._file_log import FileLog

if TYPE_CHECKING:
    import eventlog


def file_log(log: eventlog.Log) -> FileLog:
    """Give a log as what it is in a directory."""
    assert isinstance(log, FileLog)
    return log


def roll(log: eventlog.Log) -> None:
    """Begin the next segment, as a compaction does that never comes to its snapshot."""
    made = file_log(log)
    made._writer.do("a roll", lambda: made._roll(UNSET))  # noqa: SLF001 (nobody else does this half alone)
