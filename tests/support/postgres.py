"""The server for the tests that are marked `full`: one for each process of the tests, made when it is needed.

Each test has a database of its own. `postgres` does without syncs, `power_safe_postgres` keeps them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from eventlog.postgres import Postgres
from tests.support.postgres_server import PASSWORD, Cluster, NotInstalled

__all__ = ["PASSWORD", "Cluster"]

if TYPE_CHECKING:
    from collections.abc import Iterator


def missing(message: str) -> None:
    """Skip a test for what is not installed; under CI it fails."""
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def _cluster(*, power_safe: bool) -> Iterator[Cluster]:
    try:
        cluster = Cluster(power_safe=power_safe)
    except NotInstalled as error:
        missing(str(error))
        raise
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A server that syncs nothing: what survives its own crash does, what survives a power cut is not the question."""
    yield from _cluster(power_safe=False)


@pytest.fixture(scope="session")
def power_safe_postgres() -> Iterator[Cluster]:
    """A server that keeps its syncs."""
    yield from _cluster(power_safe=True)


@pytest.fixture
def database(postgres: Cluster) -> Iterator[str]:
    """The URL of a database with our tables, which is dropped after the test."""
    name = postgres.database()
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture
def database_runs(database: str) -> Iterator[Postgres]:
    """A store of a database of its own, whose leases end when a test says so."""
    store = Postgres(database, lease=600.0)
    yield store
    store.connections.close()
