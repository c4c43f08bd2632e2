"""The tracker's memory: issues and the keys they came under, in one SQLite file.

A key and its issue are written in one transaction. Two would leave a moment in which a crash makes the issue without
its key: the repeat of that request would then file it twice, and no agent could do anything about it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

_BUSY = 3.0
"""Seconds to wait for another process's lock on the file: less than the job's `lands_within`."""

_TABLES = """
CREATE TABLE IF NOT EXISTS issue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT, cause TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, created TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS issue_by_key ON issue (key);
CREATE TABLE IF NOT EXISTS remembered (
    key TEXT PRIMARY KEY, digest TEXT NOT NULL, issue INTEGER NOT NULL REFERENCES issue (id), since REAL NOT NULL);
"""


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks to file."""

    cause: str
    title: str
    body: str

    def digest(self) -> str:
        """What makes two requests the same one."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class Issue(msgspec.Struct, frozen=True):
    """A row of table `issue`. `key` is the one it came under, or None; `created` is ISO 8601 in UTC."""

    id: int
    key: str | None
    cause: str
    title: str
    body: str
    created: str


class KeyMismatch(Exception):
    """The key was used before, for another request."""


class Store:
    """The file, opened for one process. `clock` tells the time in UTC; keys age by it."""

    def __init__(self, file: Path, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._db = sqlite3.connect(file, timeout=_BUSY, isolation_level=None)
        # One file and no more when nobody writes, so that it can be copied and read by anyone. In this mode FULL does
        # not sync the directory after the journal is removed, and a power cut could bring the journal back; EXTRA does.
        self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.execute("PRAGMA synchronous = EXTRA")
        self._db.executescript(_TABLES)

    def file(self, draft: Draft, key: str | None, ttl: float) -> tuple[Issue, bool]:
        """The issue for this request, and whether it is new.

        Under a key that was used for the same request within `ttl` seconds it is the first one's issue. `key` None
        means: do not look for a repeat. Raises `KeyMismatch` when that key came with another request.
        """
        now = self._clock()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            issue = self._first(draft, key, now.timestamp() - ttl) if key is not None else None
            new = issue is None
            if issue is None:
                issue = self._insert(draft, key, now)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return issue, new

    def _first(self, draft: Draft, key: str, since: float) -> Issue | None:
        """What this key came to before; None if it is new, or forgotten."""
        query = "SELECT digest, issue FROM remembered WHERE key = ? AND since > ?"
        row: tuple[str, int] | None = self._db.execute(query, (key, since)).fetchone()
        if row is not None and row[0] != draft.digest():
            raise KeyMismatch(key)
        return self.by_id(row[1]) if row is not None else None

    def _insert(self, draft: Draft, key: str | None, now: datetime) -> Issue:
        created = now.astimezone(UTC).isoformat(timespec="milliseconds")
        values = (key, draft.cause, draft.title, draft.body, created)
        number = self._db.execute(
            "INSERT INTO issue (key, cause, title, body, created) VALUES (?, ?, ?, ?, ?)", values
        ).lastrowid
        if key is not None:
            self._db.execute(
                "INSERT OR REPLACE INTO remembered (key, digest, issue, since) VALUES (?, ?, ?, ?)",
                (key, draft.digest(), number, now.timestamp()),
            )
        return Issue(number or 0, *values)

    def by_id(self, number: int) -> Issue | None:
        """The issue with this number."""
        return next(iter(self._select("WHERE id = ?", number)), None)

    def by_key(self, key: str) -> list[Issue]:
        """The issues that came under this key, however long ago."""
        return self._select("WHERE key = ?", key)

    def search(self, text: str) -> list[Issue]:
        """The issues that contain `text` in cause, title or body, whatever its case; all of them for an empty one."""
        needle = text.casefold()
        return [i for i in self._select("") if needle in f"{i.cause}\n{i.title}\n{i.body}".casefold()]

    def _select(self, where: str, *values: object) -> list[Issue]:
        query = f"SELECT id, key, cause, title, body, created FROM issue {where} ORDER BY id"  # noqa: S608 (`where` is a literal above)
        return [Issue(*row) for row in self._db.execute(query, values)]

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def issues(file: Path) -> list[Issue]:
    """All issues in a tracker's file, for those who look at the world from outside; none if it was never used.

    Opened for writing, though nothing is written: the journal that a killed tracker leaves behind is rolled back by
    its next reader.
    """
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'issue'").fetchone():
            return []
        return [Issue(*row) for row in db.execute("SELECT id, key, cause, title, body, created FROM issue ORDER BY id")]
