"""What can go wrong with a log, one type for each thing a caller may want to do about it.

Every error keeps its facts as constructor arguments, so it survives pickling and can be shown as data. `str(error)`
says what is true now; `error.hint` says what to do next. The tree is flat on purpose: catch `LogError` for all of
them.

What these do not mean: `DiskFull` and `NotStorable` leave the log alive and nothing written; every other error that
comes out of a save leaves the writer dead, and the fate of that line is then unknown, not failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class LogError(Exception):
    """The root. Subclasses pass every constructor argument on, in order, and describe themselves in `_says`."""

    hint: str = "Look at the run with `refold verify`."

    def __str__(self) -> str:
        """Say what is true now."""
        return self._says()

    def _says(self) -> str:
        return " ".join(str(part) for part in self.args)


class LogDamaged(LogError):
    """Something that was durable once is gone or changed. Nothing on disk was touched.

    `offset` is the byte in `file` where the good lines end, `expected_seq` the number of the line that should stand
    there, `good_after` how many whole lines with a right sum lie behind that place.
    """

    hint = "Keep the directory as it is. `refold verify RUN` shows where; `refold salvage RUN NEW` copies what is good."

    def __init__(self, run: str, file: str, offset: int, expected_seq: int, good_after: int, why: str) -> None:
        """Keep the six facts (units: bytes, line number, lines)."""
        super().__init__(run, file, offset, expected_seq, good_after, why)
        self.run, self.file, self.offset = run, file, offset
        self.expected_seq, self.good_after, self.why = expected_seq, good_after, why

    def _says(self) -> str:
        where = f"{self.file} at byte {self.offset}, where line {self.expected_seq} was expected"
        return f"run {self.run} is damaged in {where}: {self.why}; good lines that follow: {self.good_after}"


class NewerFormat(LogError):
    """The log was written by a newer version; it is not damaged, and this version does not guess."""

    hint = "Read it with the version that wrote it, or a later one."

    def __init__(self, run: str, format: int) -> None:  # noqa: A002 - the field's name in the header
        """Keep the run and the number its header names."""
        super().__init__(run, format)
        self.run, self.format = run, format

    def _says(self) -> str:
        return f"run {self.run} is written in format {self.format}, which this version does not know"


class RunLocked(LogError):
    """Another writer holds the run. `pid` is None when the holder has not left a readable name."""

    hint = (
        "Wait for that process to end, or end it; the kernel drops the lock when it dies. Do not delete the lock file."
    )

    def __init__(self, run: str, pid: int | None, host: str, since: datetime | None) -> None:
        """Keep who holds the run, where, and since when (UTC)."""
        super().__init__(run, pid, host, since)
        self.run, self.pid, self.host, self.since = run, pid, host, since

    def _says(self) -> str:
        if self.pid is None:
            return f"run {self.run} is held by a process that left no name"
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        return f"run {self.run} is held by process {self.pid} on {self.host}{since}"


class LockLost(LogError):
    """The lock file was deleted or replaced while this writer held it; nothing was written, the writer is dead."""

    hint = "Another process may hold the run now. Open it again; find out what removed the lock file."

    def __init__(self, run: str) -> None:
        """Keep the run."""
        super().__init__(run)
        self.run = run

    def _says(self) -> str:
        return f"run {self.run}: the lock file this writer held is no longer the one in the directory"


class LogDead(LogError):
    """The writer will write nothing more: it was closed, or a save failed, or the process is a fork of the writer.

    After a failed save the fate of that line is unknown: it may be on disk or not. The next opener finds out.
    """

    hint = "Start no further effect. Open the run again; what is on disk then is what happened."

    def __init__(self, run: str, why: str) -> None:
        """Keep the run and the reason."""
        super().__init__(run, why)
        self.run, self.why = run, why

    def _says(self) -> str:
        return f"the writer of run {self.run} is dead: {self.why}"


class DiskFull(LogError):
    """There was no room for the line; what it had written was taken back and synced. The log is alive and unchanged."""

    hint = "Free some space (or raise the quota), then go on."

    def __init__(self, run: str, why: str) -> None:
        """Keep the run and the system's words."""
        super().__init__(run, why)
        self.run, self.why = run, why

    def _says(self) -> str:
        return f"run {self.run}: no room for the next line ({self.why}); the log is as it was before"


class DiskFailed(LogError):
    """The system refused to read or write while a run was created, opened or read."""

    hint = "See to the disk or the permissions, then try again; nothing acknowledged is lost by this."

    def __init__(self, path: str, why: str) -> None:
        """Keep the path and the system's words."""
        super().__init__(path, why)
        self.path, self.why = path, why

    def _says(self) -> str:
        return f"{self.path} cannot be used: {self.why}"


class NoSuchRun(LogError):
    """The directory holds no such run. A directory without segment, head and snapshot was never one."""

    hint = "`refold ls` lists the runs; `--runs DIR` says where to look."

    def __init__(self, run: str, runs: str, why: str = "") -> None:
        """Keep the run, the directory that was looked in, and what stands there instead, if anything."""
        super().__init__(run, runs, why)
        self.run, self.runs, self.why = run, runs, why

    def _says(self) -> str:
        return f"there is no run {self.run} in {self.runs}" + (f": {self.why}" if self.why else "")


class RunExists(LogError):
    """The id is taken. Ids are never used twice, because idempotency keys are made from them (spec 18)."""

    hint = "Choose another id, or resume the run that has it."

    def __init__(self, run: str, runs: str) -> None:
        """Keep the run and the directory."""
        super().__init__(run, runs)
        self.run, self.runs = run, runs

    def _says(self) -> str:
        return f"{self.run} exists already in {self.runs}"


class BadRunId(LogError):
    """The id cannot be a run's name on every file system; the file system was not touched."""

    hint = "Use 1 to 128 of a-z, 0-9, dot, dash and underscore, beginning with a letter or digit, not ending in a dot."

    def __init__(self, run: str, why: str) -> None:
        """Keep the id as given and the reason."""
        super().__init__(run, why)
        self.run, self.why = run, why

    def _says(self) -> str:
        shown = self.run if len(self.run) <= 60 else self.run[:60] + "…"  # noqa: PLR2004 - a message, not a limit
        return f"{shown!r} is no run id: {self.why}"


class NotStorable(LogError):
    """The line could not be read back as it was given, or is too long. Nothing was written; the log is alive."""

    hint = "Make the content storable before it reaches the log: one JSON object for each event, below the size limit."

    def __init__(self, run: str, why: str) -> None:
        """Keep the run and the reason."""
        super().__init__(run, why)
        self.run, self.why = run, why

    def _says(self) -> str:
        return f"run {self.run}: this line cannot be stored: {self.why}"


class NetworkStorage(LogError):
    """The directory is on a network file system, where a lock may not exclude another machine (spec 13)."""

    hint = "Use a local disk; in code, `force=True` accepts it where only one machine uses this directory."

    def __init__(self, path: str, kind: str) -> None:
        """Keep the path and the file system's type."""
        super().__init__(path, kind)
        self.path, self.kind = path, kind

    def _says(self) -> str:
        return f"{self.path} is on a network file system ({self.kind})"


class ReadOnly(LogError):
    """A writer was asked for where nothing can be written. Readers work."""

    hint = "Read it, or make the directory writable for this user."

    def __init__(self, path: str, why: str) -> None:
        """Keep the path and the system's words."""
        super().__init__(path, why)
        self.path, self.why = path, why

    def _says(self) -> str:
        return f"{self.path} cannot be written: {self.why}"


class NotARunsDirectory(LogError):
    """The path given as a directory of runs is something else, or cannot be read."""

    hint = "Give a directory with `--runs DIR` (default: $REFOLD_RUNS, else ./runs)."

    def __init__(self, path: str, why: str) -> None:
        """Keep the path and what is wrong with it."""
        super().__init__(path, why)
        self.path, self.why = path, why

    def _says(self) -> str:
        return f"{self.path} is no directory of runs: {self.why}"
