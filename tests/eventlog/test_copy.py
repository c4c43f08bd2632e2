"""A copy of a run: the same lines, and no second run that goes on."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import simdisk
from tests.eventlog import making
from tests.eventlog.making import AT, OPENING, event
from tests.support.faulty_disk import Fault, FaultyDisk
from tests.support.file_logs import roll


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A directory with a copy of a run of two segments that is being written."""
    runs = eventlog.store(tmp_path / "runs")
    log = runs.create("r", at=AT, events=[OPENING])
    log.append(AT, [event(1)])
    roll(log)
    log.append(AT, [event(2)])
    runs.copy("r", tmp_path / "copies")
    log.append(AT, [event(3)])
    log.close()
    return tmp_path / "copies"


def test_a_copy_holds_what_was_saved_when_it_was_made(copied: Path, tmp_path: Path) -> None:
    """Its lines are the run's, and it verifies; later lines are not in it."""
    copy = eventlog.store(copied)
    whole = eventlog.store(tmp_path / "runs").read("r").lines
    assert [line.sum for line in copy.read("r").lines] == [line.sum for line in whole[:-1]]
    verdict = copy.verify("r")
    assert (verdict.ok, verdict.head, verdict.findings) == (True, "closed", [])
    with pytest.raises(eventlog.RunExists):
        eventlog.store(tmp_path / "runs").copy("r", copied)


def test_a_copy_that_found_no_room_leaves_nothing_in_the_way_of_the_next_try(tmp_path: Path) -> None:
    """It was told that the run exists there already, and nothing of it could be read."""
    making.made(tmp_path / "runs")
    (tmp_path / "copies").mkdir()
    for nth in itertools.count(1):
        fault = Fault(verbs=("write_some",), nth=nth, error=errno.ENOSPC)
        try:
            eventlog.Directory(tmp_path / "runs", disk=FaultyDisk(eventlog.DISK, fault)).copy("r", tmp_path / "copies")
        except eventlog.DiskFull:
            assert list((tmp_path / "copies").iterdir()) == []
        else:
            break
    assert nth > 2
    assert eventlog.store(tmp_path / "copies").verify("r").ok


def test_a_copy_whose_process_died_is_no_run_and_the_next_one_is_made() -> None:
    """At whichever operation: a backup that was killed once must not fail from then on."""
    machine = simdisk.Machine()
    with eventlog.Directory("/runs", disk=simdisk.Process(machine)).create("r", at=AT, events=[OPENING]) as log:
        roll(log)
    outcomes = set[bool]()
    for nth in itertools.count(1):
        to, dies = f"/copies-{nth}", simdisk.Process(machine, pid=2)
        fault = Fault(nth=nth, error=simdisk.Killed)
        try:
            eventlog.Directory("/runs", disk=FaultyDisk(dies, fault)).copy("r", to)
        except simdisk.Killed:
            dies.die()
        else:
            break
        copies = eventlog.Directory(to, disk=simdisk.Process(machine))
        outcomes.add("r" in copies.names())
        if "r" not in copies.names():
            eventlog.Directory("/runs", disk=simdisk.Process(machine)).copy("r", to)
        assert (copies.names(), copies.verify("r").ok) == (["r"], True)
        assert machine.directories[machine.directory(Path(to))].keys() == {"r"}
    assert outcomes == {False, True}


def test_a_copy_to_where_the_run_is_being_copied_is_refused_and_touches_nothing_of_the_first(tmp_path: Path) -> None:
    """It would begin anew what the first one is making, and that one would end as a copy without its lines."""
    making.made(tmp_path / "runs")

    class Meanwhile(eventlog.Disk):
        def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
            super().rename(source, target, within=within)
            with pytest.raises(eventlog.RunExists):
                eventlog.store(tmp_path / "runs").copy("r", tmp_path / "copies")

    eventlog.Directory(tmp_path / "runs", disk=Meanwhile()).copy("r", tmp_path / "copies")
    assert eventlog.store(tmp_path / "copies").verify("r").ok


def test_what_keeps_a_run_from_being_read_is_not_said_of_the_place_of_its_copy(tmp_path: Path) -> None:
    """Whoever reads of the copy's place looks at the wrong disk."""
    segment = making.made(tmp_path / "runs")

    class Losing(eventlog.Directory):
        def read(self, run: str, **given: Any) -> eventlog.Reading:
            found = super().read(run, **given)
            segment.unlink()
            return found

    with pytest.raises(eventlog.DiskFailed) as failed:
        Losing(tmp_path / "runs").copy("r", tmp_path / "copies")
    assert segment.name in failed.value.path
    assert list((tmp_path / "copies").iterdir()) == []


@pytest.mark.fault("a copy of a run that goes on in two places")
def test_nobody_writes_to_a_copy_until_its_owner_says_that_it_is_the_run(copied: Path) -> None:
    """Two runs with one uid would send the same keys for different things; a request would wait for nobody."""
    copy = eventlog.store(copied)
    before = {path.name: path.read_bytes() for path in (copied / "r").iterdir()}
    for write in (lambda: copy.open("r"), lambda: copy.post("r", "stop", b"{}")):
        with pytest.raises(eventlog.ReadOnly, match=r"can't be written: it is a copy; .* the file `copy`") as refused:
            write()
        assert "write to what a copy was made of" in refused.value.hint
        assert "when this place may be written again" in refused.value.hint  # a system remounts what had an error
    assert {path.name: path.read_bytes() for path in (copied / "r").iterdir()} == before
    (copied / "r" / "copy").unlink()
    with copy.open("r") as log:
        assert log.append(AT, [event(4)]).seq == len(log.lines)
