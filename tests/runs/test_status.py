"""A list of runs reads their statuses; what these say is what the log says, or the log is read."""

import contextlib
import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
from runner._engine import save_pool
from runner._runs import status
from tests.cli import agents, scenes
from tests.eventlog.test_status import DiesBeforeItsHead
from tests.runs.scenes import Still
from tests.support.disks import Quick
from tests.support.forkserver import ForkServer

LABELS = {"tenant": "acme", "job/kind": "über"}


class Counting(Quick):
    """Counts the segments and statuses that are opened, and the segments that are read from their first byte on."""

    def __init__(self) -> None:
        self.segments = self.statuses = self.whole = 0
        self._fds: set[int] = set()

    def open(self, path: Path, **options: Any) -> int:
        """Count, and open."""
        fd = super().open(path, **options)
        self.segments += path.name.startswith("seg-")
        self.statuses += path.name == "status"
        (self._fds.add if path.name.startswith("seg-") else self._fds.discard)(fd)
        return fd

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Count, and read."""
        self.whole += fd in self._fds and offset == 0
        return super().pread(fd, size, offset)


@pytest.fixture
def resting(runs: Path) -> Path:
    """Runs of every kind that nobody holds."""
    scenes.finished(runs)
    scenes.stopped(runs)
    scenes.asking(runs)
    scenes.asking(runs, "answered")
    runner.approve("answered", "1.0-approve", "olga", runs=runs)
    scenes.asking(runs, "refused-for-good")
    runner.stop("refused-for-good", "olga", runs=runs)
    runner.fork("done-run", at=3, runs=runs, new="forked")
    runner.start_sync(agents.plain, "x" * 3000, runs=runs, run="long", labels=LABELS, clock=Still())
    return runs


def test_a_list_of_resting_runs_reads_no_log_and_says_what_the_logs_say(resting: Path) -> None:
    """The words are made of the state alone: whoever folds the log finds the same."""
    disk = Counting()
    listed = runner.list_runs(eventlog.Directory(resting, disk=disk))
    assert (disk.segments, len(listed)) == (0, 7)
    for info in listed:
        assert info.status == status.of(runner.read_state(info.run, resting))
        assert (info.live, info.problem) == (False, None)
        (resting / info.run / "status").unlink()
    assert runner.list_runs(resting) == listed
    assert {info.run for info in runner.list_unfinished(resting)} == {"stopped-run", "asking-run", "answered", "forked"}


def test_whoever_held_a_run_for_something_else_leaves_its_status(runs: Path) -> None:
    """A run that was compacted, or that could not be forked, would be read by every list from then on."""
    scenes.finished(runs)
    for holds in (lambda: runner.compact("done-run", runs=runs), lambda: runner.fork("done-run", at=999, runs=runs)):
        with contextlib.suppress(replay.NoSuchLine):
            holds()
        disk = Counting()
        (info,) = runner.list_runs(eventlog.Directory(runs, disk=disk))
        assert (disk.segments, info.status) == (0, status.of(runner.read_state("done-run", runs)))


def test_a_status_says_who_must_look_and_when(resting: Path) -> None:
    """An answered run is due at once; one that asks, or that its limits stopped, never by itself."""
    said = {info.run: info.status for info in runner.list_runs(resting) if info.status is not None}
    assert {run for run, words in said.items() if words.wake is not None} == {"answered", "forked"}
    assert said["answered"].wake == said["answered"].at
    assert said["asking-run"].open_questions == ("1.0-approve",)
    assert {run for run, words in said.items() if words.closed} == {"done-run", "refused-for-good", "long"}
    assert (said["long"].labels, len(said["long"].task), said["stopped-run"].stopped) == (LABELS, 2000, "TurnLimit")


def test_a_list_that_goes_on_from_an_earlier_one_reads_only_what_was_written_since(
    resting: Path,
) -> None:
    """And is the list that anybody else would make, whatever was done between the two."""
    disk = Counting()
    store = eventlog.Directory(resting, disk=disk)
    listed = runner.list_runs(store)
    with contextlib.ExitStack() as held:
        logs = {
            run: held.enter_context(eventlog.store(resting).open(run)) for run in ("asking-run", "answered", "long")
        }
        asking = logs["asking-run"]

        def grows() -> object:
            return asking.append(asking.at, [b'{"type":"message_received","id":"m","text":"x","who":"o"}'])

        for change in (
            lambda: None,
            grows,
            logs["answered"].close,
            logs["long"].abandon,
            lambda: runner.stop("answered", "olga", runs=resting),
            lambda: runner.start_sync(agents.plain, "y", runs=resting, run="another"),
            lambda: shutil.rmtree(resting / "forked"),
        ):
            change()
            disk.whole = 0
            listed = runner.list_runs(store, before=listed)
            assert listed == runner.list_runs(resting)
            assert disk.whole == 0 or change is not grows
            disk.segments = disk.statuses = disk.whole = 0
            assert runner.list_runs(store, before=listed) == listed
            assert (disk.statuses, disk.whole) == (0, 0), change
            assert disk.segments <= len(logs)


@pytest.mark.fault("a status that is wrong")
def test_words_of_another_version_are_not_understood(resting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that means something else by then would be believed."""
    ((_, words, _),) = eventlog.store(resting).statuses(["long"])
    assert words is not None
    assert status.understood(words) is not None
    for old in (words.replace(b'"v":"1.', b'"v":"0.'), b"[]", b"[" * 9000):
        assert status.understood(old) is None
    monkeypatch.setattr(status, "understood", lambda _: None)
    disk = Counting()
    assert len(runner.list_runs(eventlog.Directory(resting, disk=disk))) == 7
    assert disk.segments >= 7


@pytest.mark.fault("a status that is wrong")
def test_a_save_that_ends_between_its_lines_leaves_no_status_of_all_of_it(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large saves are several lines; what the last one would have made of the run is not what it is."""

    class Full(Quick):
        def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if b'"phase_changed"' in bytes(data):
                raise OSError(errno.ENOSPC, "no room")
            return super().write_some(fd, data, offset)

    monkeypatch.setattr(save_pool, "LINE", 1)
    with pytest.raises(eventlog.DiskFull):
        runner.start_sync(agents.plain, "look", runs=eventlog.Directory(runs, disk=Full()), run="r")
    (info,) = runner.list_runs(runs)
    assert info.status == status.of(runner.read_state("r", runs))


def approves_and_dies(runs: str) -> None:
    """Answer, and die when the answer is durable and the head does not say so."""
    runner.approve("asking-run", "1.0-approve", "olga", runs=eventlog.Directory(runs, disk=DiesBeforeItsHead()))


@pytest.mark.fault("killed between a line's sync and its head")
def test_an_answer_whose_writer_died_before_its_head_is_not_forgotten(runs: Path, forks: ForkServer) -> None:
    """A status that still asks would leave the run waiting for ever, for an answer that is there."""
    scenes.asking(runs)
    assert forks.run(approves_and_dies, runs=runs).killed
    (info,) = runner.list_runs(runs)
    assert info.status is not None
    assert (info.status.open_questions, info.status.wake) == ((), info.status.at)


@pytest.mark.parametrize(
    "labels",
    [{"": "x"}, {"Tenant": "x"}, {"a b": "x"}, {"t": "x" * 257}, {f"n{n}": "" for n in range(33)}, {"x" * 64: ""}],
    ids=["empty", "upper case", "space", "long value", "too many", "long name"],
)
def test_labels_that_no_filter_could_name_are_refused(runs: Path, labels: dict[str, str]) -> None:
    """Nothing is left behind of such a start."""
    with pytest.raises(runner.BadAgent, match="label"):
        runner.start_sync(agents.plain, "look", runs=runs, labels=labels)
    assert not runs.exists()


def test_labels_are_in_the_log_and_survive_a_fork(resting: Path) -> None:
    """They are a fact about the run like its task."""
    started = json.loads(bytes(eventlog.store(resting).read("long").lines[1].events[0]))
    assert started["labels"] == LABELS
    assert runner.fork("long", at=3, runs=resting, new="long-2").labels == LABELS
