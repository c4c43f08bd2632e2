"""What every test may rely on: the same examples each time, and nothing of the developer's environment.

A test that fails must fail again when it is run again, so hypothesis draws from a fixed seed; and it has no deadline,
because a save waits for a disk whose speed is not what a property is about.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support import order, slow
from tests.support.forkserver import ForkServer
from tests.support.postgres import database, database_runs, postgres, power_safe_postgres

__all__ = ["database", "database_runs", "postgres", "power_safe_postgres"]

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's `REFOLD_RUNS`: a test that forgot `--runs` must not find real runs."""
    monkeypatch.delenv("REFOLD_RUNS", raising=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import all tests without looking for garbage, and never look at what they imported again: it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Mark the slow tests before any are selected by their marks, and begin with the longest of those selected."""
    names = slow.names()
    for item in items:
        if getattr(item, "originalname", None) in names:
            item.add_marker(pytest.mark.slow)
    yield
    early = [item for item in items if item.get_closest_marker("early")]
    rest = [item for item in items if not item.get_closest_marker("early")]
    items[:] = order.spread(early, rest, getattr(config, "workerinput", {}).get("workercount", 1))


def pytest_xdist_auto_num_workers() -> int:
    """One more process than processors: a third of a test's time is waiting, for a disk or another process."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def _fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    with ForkServer(tmp_path_factory.mktemp("forks") / "s") as server:
        yield server


@pytest.fixture
def forks(_fork_server: ForkServer, tmp_path: Path) -> ForkServer:
    """Runs functions in processes of their own, which may die; their output goes to the test's folder."""
    _fork_server.folder = tmp_path
    return _fork_server


@pytest.fixture
def unmeasured_sigterm() -> Iterator[None]:
    """SIGTERM as a program has it that nobody measures: coverage takes the signal, and a run then leaves it alone."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)
