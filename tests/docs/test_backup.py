"""The order in which the guide copies a run is right, also while the run is being written."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import eventlog
from tests.docs import documents

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BLOCK, *_ = documents.section("eventlog/README.md", "Backups").blocks("sh")
RUN = "order-7"
COPIES = 20


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    """A directory of runs, one of which grows all the time."""
    log = eventlog.store(tmp_path / "runs").create(RUN, at=NOW, events=[b"{}"])
    over = threading.Event()

    def write() -> None:
        with log:
            while not over.is_set():
                log.append(NOW, [b'{"text":"%s"}' % (b"x" * 700)])

    writer = threading.Thread(target=write)
    writer.start()
    yield tmp_path / "runs"
    over.set()
    writer.join()


def test_the_commands_of_the_guide_make_a_copy_that_holds(written: Path) -> None:
    """As they stand, but for the command that looks at the copy: that is looked at here."""
    *lines, last = BLOCK.splitlines()
    assert last == "refold verify order-7 --runs backup"
    for _ in range(10):
        subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=written.parent, check=True)
        if eventlog.store(written.parent / "backup").verify(RUN).ok:
            return
    raise AssertionError(eventlog.store(written.parent / "backup").verify(RUN).findings)


def test_a_copy_that_begins_with_the_head_holds_whatever_is_written_meanwhile(written: Path) -> None:
    """The head names the last line that it knows, and the copy of the log ends behind it.

    A line that is written in the moment in which just its part is copied may have a hole: then another copy holds, and
    what the head names is there all the same.
    """
    for number in range(COPIES):
        assert any(_copied(written, number) for _ in range(10))


def _copied(written: Path, number: int) -> bool:
    """Copy the run in the guide's order; whether the copy is whole. What its head names is in it anyhow."""
    place = written.parent / f"copy-{number}" / RUN
    place.mkdir(parents=True)
    for pattern in ("head", "snap-*.json", "seg-*.jsonl"):
        for path in sorted((written / RUN).glob(pattern)):
            shutil.copy(path, place)
    verdict = eventlog.store(place.parent).verify(RUN)
    assert verdict.seq >= json.loads((place / "head").read_bytes())["seq"], verdict.findings
    shutil.rmtree(place.parent)
    return verdict.ok
