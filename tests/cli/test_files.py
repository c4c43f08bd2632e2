"""Files for people are their owner's alone, and no command writes where it was not asked to."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import scenes
from tests.cli.conftest import Agent, Refold

OLD = "precious\n"


def _link(file: Path) -> None:
    (file.parent / "victim").write_text(OLD)
    file.symlink_to(file.parent / "victim")


def _fifo(file: Path) -> None:
    os.mkfifo(file)


def _somebodys(file: Path) -> None:
    file.write_text(OLD)


def _facts(path: Path) -> tuple[int, ...]:
    """What a write would change; a read may change the time of access."""
    found = path.lstat()
    return found.st_ino, found.st_mode, found.st_nlink, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@pytest.mark.fault("a file that is not ours at the name to write to")
@pytest.mark.parametrize("make", [_link, _fifo, _somebodys], ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["page.html", "test_it.py", "test_it.history.jsonl"])
def test_a_command_writes_through_no_link_over_no_other_file_and_waits_for_no_pipe(
    refold: Refold, runs: Path, tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    """The report, the exported test, and the history beside it."""
    run = scenes.finished(runs)
    make(tmp_path / name)
    before = _facts(tmp_path / name)
    words = ("report", run, "-o") if name == "page.html" else ("export", run, Agent("plain"), "--pytest")
    refold(*words, tmp_path / ("page.html" if name == "page.html" else "test_it.py")).ends(2, err=f"{name} is")
    assert _facts(tmp_path / name) == before
    assert all(place.read_text() == OLD for place in tmp_path.iterdir() if place.is_file())
    assert {place.name for place in tmp_path.iterdir()} <= {name, "victim", "runs"}


def test_what_a_command_made_it_replaces_for_its_owner_alone(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """Twice, whatever the mode became in between."""
    run = scenes.finished(runs)
    for _ in range(2):
        assert refold("report", run, "-o", tmp_path / "page.html").status == 0
        assert refold("export", run, Agent("plain"), "--pytest", tmp_path / "test_it.py").status == 0
        for name in ("page.html", "test_it.py", "test_it.history.jsonl"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
            (tmp_path / name).chmod(0o644)
