"""The tracker's memory: issues, their comments, and the keys they came under, in one SQLite file.

A key stands in the row of what it made. Apart they could be parted by a crash, which would make the issue without its
key: the repeat of that request would then file it twice, and no agent could do anything about it.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

_BUSY = 3.0
"""Seconds to wait for another process's lock on the file: less than the job's `visible_within`."""

_TABLES = """
CREATE TABLE IF NOT EXISTS issue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT, cause TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, created TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS issue_by_key ON issue (key);
CREATE TABLE IF NOT EXISTS comment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issue INTEGER NOT NULL REFERENCES issue (id), key TEXT, text TEXT NOT NULL, created TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS comment_by_key ON comment (key);
"""


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks to file."""

    cause: str
    title: str
    body: str


class Remark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks to note on an issue."""

    text: str


class Issue(Draft, frozen=True):
    """A row of table `issue`. `key` is the one it came under, or None; `created` is ISO 8601 in UTC."""

    id: int
    key: str | None
    created: str


class Comment(Remark, frozen=True):
    """A row of table `comment`, as `Issue`; `issue` is the number of the one it is about."""

    id: int
    issue: int
    key: str | None
    created: str


Row = TypeVar("Row", Issue, Comment)


class KeyMismatch(Exception):
    """The key was used before, for another request."""


class NoSuchIssue(Exception):
    """There is no issue with that number."""


class Store:
    """The file, opened for one process. `clock` tells the time in UTC; keys age by it.

    In `file` and `comment`, a key that was used for the same request within `ttl` seconds makes nothing new; 0 means:
    do not look for a repeat. They raise `KeyMismatch` when that key came with another request.
    """

    def __init__(self, file: Path, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        # In a sweep two processes that live at once have a thread each, and take turns.
        self._db = sqlite3.connect(file, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        # One file and no more when nobody writes, so that it can be copied and read by anyone. In this mode FULL does
        # not sync the directory after the journal is removed, and a power cut could bring the journal back; EXTRA does.
        self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.execute("PRAGMA synchronous = EXTRA")
        self._db.executescript(_TABLES)

    def file(self, draft: Draft, key: str | None, ttl: float) -> tuple[Issue, bool]:
        """The issue for this request, and whether it is new."""
        return self._once(Issue, msgspec.structs.asdict(draft), key, ttl)

    def comment(self, issue: int, remark: Remark, key: str | None, ttl: float) -> tuple[Comment, bool]:
        """The comment for this request, and whether it is new. Raises `NoSuchIssue`."""
        if not self.find(Issue, id=issue):
            raise NoSuchIssue(issue)
        return self._once(Comment, {"issue": issue, "text": remark.text}, key, ttl)

    def _once(self, kind: type[Row], said: dict[str, object], key: str | None, ttl: float) -> tuple[Row, bool]:
        now = self._clock()
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            under: list[Issue | Comment] = [*self.find(Issue, key=key), *self.find(Comment, key=key)]
            known = [row for row in under if now.timestamp() - datetime.fromisoformat(row.created).timestamp() < ttl]
            if known:
                first = max(known, key=lambda row: row.created)
                if not isinstance(first, kind) or said.items() - msgspec.structs.asdict(first).items():
                    raise KeyMismatch(key)
                return first, False
            row = {"key": key, "created": now.astimezone(UTC).isoformat(timespec="milliseconds"), **said}
            names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
            made = self._db.execute(f"INSERT INTO {kind.__name__} ({names}) VALUES ({marks})", row)  # noqa: S608 (names of ours)
            return self.find(kind, id=made.lastrowid)[0], True

    def find(self, kind: type[Row], **columns: object) -> list[Row]:
        """The rows of a kind in their order, all or those with these values; none has a key that is None."""
        names, where = ", ".join(kind.__struct_fields__), "".join(f" AND {column} = ?" for column in columns)
        query = f"SELECT {names} FROM {kind.__name__} WHERE true{where} ORDER BY id"  # noqa: S608 (names of ours)
        return [kind(*row) for row in self._db.execute(query, (*columns.values(),))]

    def search(self, text: str) -> list[Issue]:
        """The issues that contain `text` in cause, title or body, whatever its case; all of them for an empty one."""
        needle = text.casefold()
        return [i for i in self.find(Issue) if needle in f"{i.cause}\n{i.title}\n{i.body}".casefold()]

    def close(self) -> None:
        self._db.close()


def stored(file: Path, kind: type[Row]) -> list[Row]:
    """All rows of a kind in a tracker's file, read without the tracker; none if it was never used.

    The file is opened for writing: whoever opens it first rolls back the journal of a killed tracker.
    """
    if not file.exists():
        return []
    with closing(Store(file)) as store:
        return store.find(kind)
