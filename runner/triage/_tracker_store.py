"""The tracker's memory: issues, their comments, and the keys they came under, in one SQLite file.

A key and what it made are written in one transaction. Two would leave a moment in which a crash makes the issue without
its key: the repeat of that request would then file it twice, and no agent could do anything about it.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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
CREATE TABLE IF NOT EXISTS remembered (
    key TEXT PRIMARY KEY, digest TEXT NOT NULL, issue INTEGER NOT NULL REFERENCES issue (id), since REAL NOT NULL);
"""


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks to file."""

    cause: str
    title: str
    body: str


class Remark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks to note on an issue."""

    text: str


class Issue(msgspec.Struct, frozen=True):
    """A row of table `issue`. `key` is the one it came under, or None; `created` is ISO 8601 in UTC."""

    id: int
    key: str | None
    cause: str
    title: str
    body: str
    created: str


class Comment(msgspec.Struct, frozen=True):
    """A row of table `comment`; `issue` is the number of the one it is about, the rest as in `Issue`."""

    id: int
    issue: int
    key: str | None
    text: str
    created: str


_Row = TypeVar("_Row", Issue, Comment)


class KeyMismatch(Exception):
    """The key was used before, for another request."""


class NoSuchIssue(Exception):
    """There is no issue with that number."""


class Store:
    """The file, opened for one process. `clock` tells the time in UTC; keys age by it.

    In `file` and `comment`, a key that was used for the same request within `ttl` seconds makes nothing new; None
    means: do not look for a repeat. They raise `KeyMismatch` when that key came with another request.
    """

    def __init__(self, file: Path, clock: Callable[[], datetime]) -> None:
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
        with self._transaction() as now:
            digest = hashlib.sha256(msgspec.json.encode(draft)).hexdigest()
            first = self._first(key, digest, now.timestamp() - ttl)
            if first is not None and (issue := self.by_id(first)) is not None:
                return issue, False
            values = (key, draft.cause, draft.title, draft.body, _text(now))
            number = self._insert("issue (key, cause, title, body, created) VALUES (?, ?, ?, ?, ?)", *values)
            self._remember(key, digest, number, now)
            return Issue(number, *values), True

    def comment(self, issue: int, remark: Remark, key: str | None, ttl: float) -> tuple[Comment, bool]:
        """The comment for this request, and whether it is new. Raises `NoSuchIssue`."""
        with self._transaction() as now:
            digest = hashlib.sha256(msgspec.json.encode([issue, remark])).hexdigest()
            if self.by_id(issue) is None:
                raise NoSuchIssue(issue)
            if self._first(key, digest, now.timestamp() - ttl) is not None:
                return self.comments_on(issue, key)[-1], False
            values = (issue, key, remark.text, _text(now))
            number = self._insert("comment (issue, key, text, created) VALUES (?, ?, ?, ?)", *values)
            self._remember(key, digest, issue, now)
            return Comment(number, *values), True

    @contextmanager
    def _transaction(self) -> Iterator[datetime]:
        """All that is written in the block, or nothing; yields the time."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._clock()
            self._db.execute("COMMIT")
        except BaseException:  # whatever ends this leaves no open transaction, and goes on up
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _first(self, key: str | None, digest: str, since: float) -> int | None:
        """The number of the issue that this key came to before; None if it is new, or forgotten."""
        query = "SELECT digest, issue FROM remembered WHERE key = ? AND since > ?"
        row: tuple[str, int] | None = self._db.execute(query, (key, since)).fetchone()
        if row is not None and row[0] != digest:
            raise KeyMismatch(key)
        return row[1] if row is not None else None

    def _insert(self, row: str, *values: object) -> int:
        return self._db.execute(f"INSERT INTO {row}", values).lastrowid or 0

    def _remember(self, key: str | None, digest: str, issue: int, now: datetime) -> None:
        if key is not None:
            self._db.execute(
                "INSERT OR REPLACE INTO remembered (key, digest, issue, since) VALUES (?, ?, ?, ?)",
                (key, digest, issue, now.timestamp()),
            )

    def by_id(self, number: int) -> Issue | None:
        return next(iter(self._issues("WHERE id = ?", number)), None)

    def by_key(self, key: str) -> list[Issue]:
        """The issues that came under this key, however long ago."""
        return self._issues("WHERE key = ?", key)

    def search(self, text: str) -> list[Issue]:
        """The issues that contain `text` in cause, title or body, whatever its case; all of them for an empty one."""
        needle = text.casefold()
        return [i for i in self._issues("") if needle in f"{i.cause}\n{i.title}\n{i.body}".casefold()]

    def _issues(self, where: str, *values: object) -> list[Issue]:
        return [Issue(*row) for row in self._db.execute(_select(Issue, where), values)]

    def comments_on(self, issue: int, key: str | None = None) -> list[Comment]:
        """The comments on an issue, all or those that came under a key."""
        where, values = ("", ()) if key is None else (" AND key = ?", (key,))
        return [
            Comment(*row) for row in self._db.execute(_select(Comment, f"WHERE issue = ?{where}"), (issue, *values))
        ]

    def close(self) -> None:
        self._db.close()


def issues(file: Path) -> list[Issue]:
    """All issues in a tracker's file, read without the tracker; none if it was never used."""
    return _rows(file, Issue)


def comments(file: Path) -> list[Comment]:
    """All comments in a tracker's file, as `issues`."""
    return _rows(file, Comment)


def _rows(file: Path, kind: type[_Row]) -> list[_Row]:
    """The rows of the table of this name, if it is there.

    Opened for writing, though nothing is written: the next reader rolls back the journal of a tracker that was killed.
    """
    table = kind.__name__.lower()
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return []
        return [kind(*row) for row in db.execute(_select(kind, ""))]


def _select(kind: type[Issue | Comment], where: str) -> str:
    return f"SELECT {', '.join(kind.__struct_fields__)} FROM {kind.__name__} {where} ORDER BY id"  # noqa: S608 (names and literals of ours)


def _text(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="milliseconds")
