"""What can go wrong with a log, one type for each thing a caller may want to do about it.

An error declares its data as fields, a sentence and a hint; `StructuredError` does the rest. The tree is flat: catch
`LogError` for all of them. Only `RunPruned` is a `NoSuchRun` too.

`DiskFull` and `NotStorable` leave the log alive and nothing written. Every other error that comes out of a save leaves
the writer dead, and it is then unknown whether that line is on disk.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from eventlog import _structured_error
from eventlog._line import FORMAT

StructuredError = _structured_error.StructuredError


class LogError(StructuredError):
    """The root of the log's errors."""

    hint = "Look at the run with `refold verify`."


class LogDamaged(LogError):
    """Something that was durable once is gone or changed. Nothing on disk was touched.

    `offset` is the byte in `file` where the good lines end, `expected_seq` the number of the line that should stand
    there, `good_after` how many whole lines with a right sum follow that place.
    """

    sentence = (
        "run {run} is damaged in {file} at byte {offset}, where line {expected_seq} was expected: {why}; "
        "good lines that follow: {good_after}"
    )
    hint = "Keep the directory as it is. `refold verify RUN` shows where; `refold salvage RUN NEW` copies what is good."
    run: str
    file: str
    offset: int
    expected_seq: int
    good_after: int
    why: str


class OtherFormat(LogError):
    """The log was written by an earlier or a later edition; it is not damaged, and this version does not guess."""

    hint = "Read it with the edition that wrote it."
    run: str
    format: int

    def __str__(self) -> str:
        edition = "an earlier" if self.format < FORMAT else "a later"
        return f"run {self.run} was written by {edition} edition (format {self.format}; this one reads {FORMAT})"


class OtherSchema(LogError):
    """A database has no tables of refold, or those of another version; nothing was changed."""

    sentence = "{path} {why}"
    hint = "`refold migrate --runs URL` makes them, or brings older ones up; later ones need a later version of refold."
    path: str
    why: str


class RunLocked(LogError):
    """Another writer holds the run. `pid` is None when the holder left no readable name; times are in UTC.

    `until` is the end of the holder's lease, in a database: it renews it as long as it lives. The writer may be one of
    this very process; the hint is `HERE` then.
    """

    HERE: ClassVar[str] = (
        "This very process carries the run on, or writes to it: wait until that has come to its end. "
        "In a `runner.Worker`, `start` attaches to a run that it carries."
    )

    hint = (
        "Wait for that process to end, or end it; the run is free when it dies, in a database when its lease ends. "
        "Do not delete a lock file."
    )
    run: str
    pid: int | None
    host: str
    since: datetime | None
    until: datetime | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return f"run {self.run} is held by a process that left no name"
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        until = f"; its lease is good until {self.until:%H:%M:%S}" if self.until else ""
        return f"run {self.run} is held by process {self.pid} on {self.host}{since}{until}"


class LockLost(LogError):
    """The writer holds the run no more; nothing was written, the writer is dead.

    In a directory its lock file was deleted or replaced; in a database its lease ran out, and another took the run.
    """

    sentence = "run {run}: {why}"
    hint = "Another process may hold the run now. Open it again; find out what took the lock away."
    run: str
    why: str = "the lock file this writer held is no longer the one in the directory"


class LogDead(LogError):
    """The writer will write nothing more: it was closed, or a save failed, or the process is a fork of the writer.

    After a failed save the line may be on disk or not. The next opener finds out.
    """

    sentence = "the writer of run {run} is dead: {why}"
    hint = "Start no further effect. Open the run again; what is on disk then is what happened."
    run: str
    why: str


class LogBusy(LogError):
    """A signal handler used the log inside a save of its own thread. That save goes on, and nothing else was done."""

    sentence = "run {run}: a save of this thread is under way"
    hint = "Let the handler only note that it was called, and use the log when the save has returned."
    run: str


class DiskFull(LogError):
    """There was no room for what was to be written; that was taken back. The log is alive and unchanged.

    `run` is empty where it is no run's, but a place for tombstones.
    """

    hint = "Free some space (or raise the quota), then go on."
    run: str
    why: str

    def __str__(self) -> str:
        return (
            f"{f'run {self.run}: ' if self.run else ''}no room is left ({self.why}); what was saved is as it was before"
        )


class DiskFailed(LogError):
    """The system refused to read or write while a run was created, opened or read."""

    sentence = "{path} can't be used: {why}"
    hint = "Repair the disk, the permissions or the server, then try again; nothing acknowledged is lost by this."
    path: str
    why: str


class NoSuchRun(LogError):
    """The directory holds no such run. A directory without segment, head and snapshot was never one.

    `why` says what has the run's name instead, if anything.
    """

    hint = "`refold ls` lists the runs; `--runs DIR` says where to look."
    run: str
    runs: str
    why: str = ""

    def __str__(self) -> str:
        other = f"{self.run} in {self.runs} is no run: {self.why}"
        return other if self.why else f"there is no run {self.run} in {self.runs}"


class RunPruned(NoSuchRun):
    """The run ended and was pruned; its id stays taken, so that the same request again does nothing twice.

    `at` is when it ended (UTC) and `sum` that of its last line, unless its tombstone is unreadable; `words` are what
    whoever pruned it kept, by name.
    """

    hint = "What it did is done: do not begin it anew. `refold prune --forget AGE` frees the ids of runs long gone."
    at: datetime | None = None
    sum: str = ""
    words: Mapping[str, str] = {}

    def __str__(self) -> str:
        known = [f"it ended at {self.at:%Y-%m-%d %H:%M:%S} UTC"] if self.at is not None else []
        known += [f"{name} {word}" for name, word in {"sum": self.sum, **self.words}.items() if word]
        return f"run {self.run} of {self.runs} was pruned" + (f": {', '.join(known)}" if known else "")


class RunExists(LogError):
    """The id is taken. `differs` names what is another one's, for a caller that would go on with a run like its own."""

    hint = "Choose another id (or another place, for a copy), or resume the run that has it."
    run: str
    runs: str
    differs: tuple[str, ...] = ()

    def __str__(self) -> str:
        other = f", and not with this {', this '.join(self.differs)}" if self.differs else ""
        return f"{self.run} exists already in {self.runs}{other}"


class BadRunId(LogError):
    """The id cannot be a run's name on every file system; the file system was not touched."""

    hint = "Use 1 to 128 of a-z, 0-9, dot, dash and underscore, beginning with a letter or digit, not ending in a dot."
    run: str
    why: str

    def __str__(self) -> str:
        shown = self.run if len(self.run) <= 60 else self.run[:60] + "…"  # noqa: PLR2004 - a message, not a limit
        return f"{shown!r} is no run id: {self.why}"


class NotStorable(LogError):
    """The line could not be read back as it was given, or is too long. Nothing was written; the log is alive."""

    sentence = "run {run}: this line can't be stored: {why}"
    hint = "Make the content storable before it reaches the log: one JSON object for each event, below the size limit."
    run: str
    why: str


class NetworkStorage(LogError):
    """The directory is on a network file system of type `kind`, where a lock may not exclude another machine."""

    sentence = "{path} is on a network file system ({kind})"
    hint = "Use a local disk; in code, `force=True` accepts it where only one machine uses this directory."
    path: str
    kind: str


class Untrusted(LogError):
    """A directory that somebody else can write to: they could put a run or an answer there that nobody gave."""

    sentence = "{path} is not this user's alone: {why}"
    hint = "Use a directory of your own, or take those rights away (`chmod go-w`); in code, `force=True` accepts it."
    path: str
    why: str


class ReadOnly(LogError):
    """A writer was asked for where nothing can be written. Readers work."""

    sentence = "{path} can't be written: {why}"
    hint = "Read it here; write to what a copy was made of, to another server, or when this place may be written again."
    path: str
    why: str


class NotARunsDirectory(LogError):
    """What was given as the place of runs is something else, or cannot be read."""

    sentence = "{path} is no place of runs: {why}"
    hint = "Give a directory, or postgresql://USER@HOST/DATABASE, with `--runs` (default: $REFOLD_RUNS, else ./runs)."
    path: str
    why: str
