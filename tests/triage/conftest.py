"""One finished run of each task for a test session, and no tracker left behind by any test."""

import fcntl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runner.triage import _suite
from tests.triage import worlds
from tests.triage.service import Service
from tests.triage.suites import Remembered


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this session share."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if base.name.startswith("popen-") else base) / "triage"
    (place / "suites").mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture(scope="session")
def suites(shared: Path) -> Remembered:
    """What the session knows of workspaces' tests."""
    return Remembered(shared / "suites")


@pytest.fixture
def _suites_once(suites: Remembered, monkeypatch: pytest.MonkeyPatch) -> None:
    """Really run a workspace's tests once for each content."""
    monkeypatch.setattr(_suite, "run", suites.run)


def _finished(task: str, shared: Path, suites: Remembered) -> worlds.Done:
    """The session's finished run of a task; whichever process asks first makes it, once."""
    with (shared / f"{task}.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setattr(_suite, "run", suites.run)
        done = worlds.recorded(task, shared / task)
        worlds.end_trackers(shared / task)
    return done


@pytest.fixture(scope="session")
def finished(shared: Path, suites: Remembered) -> worlds.Done:
    """A run of the first task that nothing interrupted; not to be changed: copy it."""
    return _finished(worlds.TASK, shared, suites)


@pytest.fixture(scope="session")
def batch(shared: Path, suites: Remembered) -> worlds.Done:
    """The same of the batch."""
    return _finished(worlds.BATCH, shared, suites)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A tracker without faults and without issues."""
    with closing(Service(tmp_path)) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_tracker_left(tmp_path: Path) -> Iterator[None]:
    """A tracker outlives its starter by design; a test's must not."""
    yield
    worlds.end_trackers(tmp_path)
