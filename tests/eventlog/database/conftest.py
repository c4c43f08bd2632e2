"""What these tests do to a database behind the store's back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from eventlog.postgres import Postgres
from eventlog.postgres._connections import Connections


def expire(runs: Postgres) -> None:
    """End every lease at the server, as time would."""
    runs.connections.rows("update refold.run set expires = now() - interval '1 second'")


def began(act: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Do something in a thread; what comes of it is in the list."""
    came: list[Any] = []
    thread = threading.Thread(target=lambda: came.append(act()))
    thread.start()
    return thread, came


class Cut:
    """A connection that breaks before its first statement, or after it: the answer is lost."""

    def __init__(self, connection: Any, when: str) -> None:
        self._connection, self._when = connection, when

    def execute(self, *given: Any, **options: Any) -> Any:
        """Do it, or not, and lose the connection."""
        if self._when == "after":
            self._connection.execute(*given, **options)
        self._connection.close()
        raise psycopg.OperationalError("the connection was lost")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have the next connection that is used break, `before` or `after` its statement."""

    def once(when: str) -> None:
        taken = Connections._taken  # noqa: SLF001 (the only place to break it)
        broken: list[str] = []

        def breaks(connections: Connections) -> Any:
            connection = taken(connections)
            if broken:
                return connection
            broken.append(when)
            return Cut(connection, when)

        monkeypatch.setattr(Connections, "_taken", breaks)

    return once
