"""Which database, and what may be said of it: no message, log or table holds its password or any other parameter.

What a row means depends on nothing that the server, the role, the database or a caller has set: rows come in binary, as
tuples, their text in UTF-8 and their times in UTC.
"""

import contextlib
import math
import time
from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format
from psycopg.rows import tuple_row

from eventlog.errors import DiskFailed, LogError, NotARunsDirectory, OtherSchema, ReadOnly

Connection: TypeAlias = "psycopg.Connection[Any]"
_TABLES = {"3F000", "42P01", "42703"}
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


class _Utc(Loader):
    """A time in UTC: psycopg's own has the zone of the session."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        return _EPOCH + timedelta(microseconds=int.from_bytes(bytes(data), signed=True))


class _Silent(psycopg.OperationalError):
    """Nothing came from the server for too long, and the connection was closed."""


class _Bounded(psycopg.Connection[Any]):
    """A connection that is given up when nothing comes for `silence` seconds: whoever answers may be gone unseen."""

    silence = math.inf

    def wait(self, gen: Generator[Any, Any, Any], *given: Any, **more: Any) -> Any:
        try:
            return super().wait(_heard(gen, self.silence), *given, **more)
        except _Silent:
            self.close()
            raise


def unhurried(query: str, values: Any, connection: Connection) -> list[tuple[Any, ...]]:
    """The rows of a statement that may have so much to do that nothing comes for long."""
    before = getattr(connection, "silence", math.inf)
    connection.silence = math.inf  # type: ignore[attr-defined] # a borrowed one waits as its owner wants
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.silence = before  # type: ignore[attr-defined]


def _heard(gen: Generator[Any, Any, Any], silence: float) -> Generator[Any, Any, Any]:
    """What psycopg waits for, which tells now and then that nothing has come."""
    ready, since = None, time.monotonic()
    while True:
        try:
            wanted = gen.send(ready)
        except StopIteration as over:
            return over.value
        ready = yield wanted
        if ready:
            since = time.monotonic()
        elif time.monotonic() - since > silence:
            raise _Silent(f"the server said nothing for {silence:.0f} s")


class _Cursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor that gives tuples and asks for binary ones."""

    def __init__(self, connection: Connection, **_: Any) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self.format = Format.BINARY


class Borrowed:
    """A caller's connection, whose statements we run as on one of ours."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, query: Any, values: Any = None) -> _Cursor:
        cursor = _Cursor(self._connection)
        cursor.adapters.register_loader("timestamptz", _Utc)
        return cursor.execute(query, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Place:
    """One database. As text it is its URL, without a password."""

    def __init__(self, shown: str, parameters: Mapping[str, Any]) -> None:
        self._shown, self._parameters = shown, parameters

    def __str__(self) -> str:
        return self._shown

    def connect(self, silence: float = math.inf, **options: Any) -> Connection:
        """Open a connection, each statement of which is a transaction, and fails after so many seconds of silence."""
        given = {**self._parameters, **options, "client_encoding": "utf8", "cursor_factory": _Cursor}
        connection = _Bounded.connect(**given, autocommit=True)
        connection.silence = silence
        connection.adapters.register_loader("timestamptz", _Utc)
        return connection

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what the server or the way to it refuses as an error of ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self.refused(error) from error

    def refused(self, error: psycopg.Error) -> LogError:
        """Give the error of ours that an error of the server's means, when nothing was written."""
        if error.sqlstate in _TABLES:
            return OtherSchema(str(self), "lacks the tables of this version")
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return ReadOnly(str(self), "the server accepts no writes")
        return DiskFailed(str(self), self.said(error))

    def said(self, error: psycopg.Error) -> str:
        """Give what an error says, in one line."""
        text = error.diag.message_primary or str(error)
        for name, value in self._parameters.items():
            if "pass" in name and value:
                text = text.replace(str(value), "***")
        return " ".join(text.split()) or type(error).__name__


def read(url: str) -> Place:
    """Read the URL of a database. Raises `NotARunsDirectory`, which does not quote it."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        raise NotARunsDirectory("postgresql://…", "it cannot be read as the URL of a database") from None
    user, host, port, name = (str(given[part]) if part in given else "" for part in ("user", "host", "port", "dbname"))
    if "@" in host[1:] or (url.endswith(name) and "@" in name) or port.strip("0123456789,"):
        raise NotARunsDirectory(
            "postgresql://…", "a user or password has %40 for @ and %2F for /, and a port is a number"
        )
    shown = f"postgresql://{user and user + '@'}{host}{port and ':' + port}/{name}"
    return Place(shown, {"application_name": "refold", **given})
