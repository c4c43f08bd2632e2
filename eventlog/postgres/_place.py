"""Which database, and what may be said of it: no message, log or table holds its password or any other parameter."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from eventlog.errors import DiskFailed, LogError, NotARunsDirectory, OtherSchema, ReadOnly

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
_TABLES = {"3F000", "42P01", "42703"}
_REFUSES_WRITES = {"25006"}


class Place:
    """One database. As text it is its URL, without a password."""

    def __init__(self, shown: str, parameters: Mapping[str, Any]) -> None:
        self._shown, self._parameters = shown, parameters

    def __str__(self) -> str:
        return self._shown

    def connect(self, **options: Any) -> Connection:
        """Open a connection, each statement of which is a transaction."""
        return psycopg.connect(**{**self._parameters, **options}, autocommit=True)

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
            return OtherSchema(str(self), "has not the tables of this version")
        if error.sqlstate in _REFUSES_WRITES:
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
    shown = f"postgresql://{user and user + '@'}{host}{port and ':' + port}/{name}"
    return Place(shown, {"application_name": "refold", **given})
