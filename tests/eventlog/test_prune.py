"""Pruning: a run is there whole or its tombstone is, whatever dies at any moment; its id stays taken."""

from __future__ import annotations

import errno
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
from eventlog import simdisk
from tests.eventlog import making
from tests.support.faulty_disk import VERBS, Fault, FaultyDisk

RUNS = Path("/runs")
WORDS = {"r": {"uid": "1f", "answer": "ab"}}
END = making.AT + timedelta(seconds=2)


def _machine() -> simdisk.Machine:
    """A run with segments, a snapshot and an inbox."""
    machine = simdisk.Machine()
    store = eventlog.Directory(RUNS, disk=simdisk.Process(machine))
    with store.create("r", at=making.AT, events=[making.OPENING]) as log:
        log.append(END, [making.event(1)])
        log.compact(b"{}", 1)
    store.post("r", "stop", b"one")
    return machine


def _on(machine: simdisk.Machine, *faults: Fault, pid: int = 2) -> eventlog.Directory:
    process = simdisk.Process(machine, pid)
    return eventlog.Directory(RUNS, disk=FaultyDisk(process, *faults) if faults else process)


def _pruned(store: eventlog.Store) -> list[eventlog.LogError | None]:
    return [error for _, error in store.prune(WORDS)]


def _is_there(store: eventlog.Store) -> bool:
    """Whether the run is there, whole; else its tombstone must be."""
    if not store.names():
        with pytest.raises(eventlog.RunPruned) as gone:
            store.read("r")
        assert (gone.value.at, gone.value.words, len(gone.value.sum)) == (END, WORDS["r"], 32)
        return False
    assert len(store.read("r").lines) == 4
    assert store.verify("r").ok
    return True


def _is_clean(machine: simdisk.Machine) -> None:
    """Only the tombstone is left, and nobody may take the id."""
    image = {path for path, _ in simdisk.Image(machine.directories, dict.fromkeys(machine.files, b"")).walk()}
    assert image == {"/runs", "/runs/.pruned", "/runs/.pruned/r"}
    with pytest.raises(eventlog.RunPruned):
        _on(machine).create("r", at=making.AT, events=[making.OPENING])


def test_a_pruned_run_leaves_one_small_file_and_every_use_of_its_id_says_what_is_known(tmp_path: Path) -> None:
    """Whoever would begin it anew is told when it ended and what it came to."""
    store = eventlog.store(tmp_path)
    making.made(tmp_path)
    making.made(tmp_path, "other")
    total = store.read("r").lines[-1].sum
    assert dict(store.prune(WORDS)) == {"r": None}
    assert [path.name for path in (tmp_path / ".pruned").iterdir()] == ["r"]
    assert (store.names(), store.runs()) == (["other"], ["other"])
    stones = {"r": (END, total)}
    for use in (store.open, store.read, store.verify, store.inbox, lambda run: store.post(run, "stop", b"x")):
        with pytest.raises(eventlog.RunPruned, match=f"ended at 2026-11-29 15:15:00 UTC, sum {total}, uid 1f") as gone:
            use("r")
        assert (gone.value.at, gone.value.sum) == stones["r"]
    with pytest.raises(eventlog.RunPruned):
        store.create("r", at=making.AT, events=[making.OPENING])
    with pytest.raises(eventlog.RunPruned):
        store.fork(store.read("other").lines, "r", keep=0, at=END, events=[making.OPENING])
    assert isinstance(dict(store.prune(WORDS))["r"], eventlog.RunPruned)


@pytest.mark.fault("a process that dies while it prunes")
def test_a_death_at_any_operation_leaves_the_run_or_its_tombstone_and_the_next_pruning_ends_it() -> None:
    """No reader ever meets half a run."""
    deaths, seen = 0, set()
    while True:
        machine = _machine()
        fault = Fault(nth=deaths + 1, error=simdisk.Killed)
        store = _on(machine, fault)
        try:
            assert _pruned(store) == [None]
            break
        except simdisk.Killed:
            deaths += 1
        store.disk.inner.die()  # type: ignore[attr-defined] # the process behind the faults
        there = _is_there(_on(machine, pid=3))
        seen.add(there)
        assert [type(error) for error in _pruned(_on(machine, pid=4))] == (
            [type(None)] if there else [eventlog.RunPruned]
        )
        _is_clean(machine)
    assert seen == {True, False}
    assert deaths > 15


@pytest.mark.fault("a power cut while a run is pruned")
@pytest.mark.parametrize("model", ["ext4", "posix"])
def test_a_power_cut_leaves_the_run_or_its_tombstone_and_never_neither(model: simdisk.Model) -> None:
    """Once pruning returned, the id is taken for good."""
    machine = _machine()
    began = len(machine.trace)
    assert _pruned(_on(machine)) == [None]
    seen = set()
    for cut in simdisk.cuts(machine.trace, model, start=machine.image, first=began, limit=64, seed=1):
        if _has_two_names(cut.image):
            continue  # a rename is atomic: no file system gives a directory two names
        booted = simdisk.Machine(cut.image)
        there = _is_there(_on(booted))
        seen.add((there, cut.after == len(machine.trace)))
        _pruned(_on(booted, pid=3))
        _is_clean(booted)
    assert {(True, False), (False, False), (False, True)} == seen


@pytest.mark.fault("failing system call")
@pytest.mark.parametrize("lasting", [False, True])
def test_an_operation_that_fails_is_an_error_of_ours_and_costs_neither_run_nor_tombstone(*, lasting: bool) -> None:
    """A full or failing disk meets the pruning as it meets a save."""
    failed = 0
    for error in (errno.ENOSPC, errno.EIO):
        for nth in range(1, 200):
            machine = _machine()
            store = _on(machine, Fault(verbs=VERBS, nth=nth, error=error, lasting=lasting))
            try:
                problems = _pruned(store)
            except eventlog.LogError as problem:
                problems = [problem]
            _is_there(_on(machine, pid=3))
            if not store.disk.hit:  # type: ignore[attr-defined] # the faults
                break
            failed += problems != [None]
            _pruned(_on(machine, pid=4))
            _is_clean(machine)
    assert failed > 40


def test_what_is_held_damaged_or_not_only_ours_stays(tmp_path: Path) -> None:
    """One that stays keeps none of the others."""
    store = eventlog.store(tmp_path)
    for run in ("gone", "mine", "bad"):
        making.made(tmp_path, run)
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    making.segment(tmp_path, "bad").write_bytes(making.segment(tmp_path, "bad").read_bytes()[:-200])
    with store.create("held", at=making.AT, events=[making.OPENING]):
        found = dict(store.prune({run: {} for run in ("held", "mine", "bad", "never", "gone")}))
    kinds = {run: type(error) for run, error in found.items()}
    assert kinds == {
        "held": eventlog.RunLocked,
        "mine": eventlog.DiskFailed,
        "bad": eventlog.LogDamaged,
        "never": eventlog.NoSuchRun,
        "gone": type(None),
    }
    assert sorted(store.names()) == ["bad", "held", "mine"]


@pytest.mark.fault("a second process that prunes")
def test_two_that_prune_at_once_remove_nothing_of_each_others(tmp_path: Path) -> None:
    """What looks left over is only removed by one who is alone."""
    making.made(tmp_path)
    making.made(tmp_path, "other")

    class Joined(eventlog.Disk):
        def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
            if source.name.startswith(".tmp-") and joined:
                joined.pop()
                assert dict(eventlog.store(tmp_path).prune({"other": {}})) == {"other": None}
            super().rename(source, target, within=within)

    joined = [1]
    assert dict(eventlog.Directory(tmp_path, disk=Joined()).prune(WORDS)) == {"r": None}
    assert sorted(path.name for path in (tmp_path / ".pruned").iterdir()) == ["other", "r"]


@pytest.mark.parametrize(
    ("act", "first"), [("read", "list"), ("read", "open"), ("verify", "list"), ("verify", "open"), ("open", "list")]
)
def test_a_run_that_is_pruned_while_it_is_used_was_pruned(tmp_path: Path, act: str, first: str) -> None:
    """It is no failing disk: whoever lists runs meanwhile may pass over it."""
    making.made(tmp_path)

    class Late(eventlog.Disk):
        def list(self, path: Path) -> list[str]:
            self._prune(path.name == "r" and first == "list")
            return super().list(path)

        def open(self, path: Path, **how: Any) -> int:
            self._prune(path.name.startswith("seg-") and first == "open")
            return super().open(path, **how)

        def _prune(self, now: bool) -> None:
            if now and eventlog.store(tmp_path).names():
                dict(eventlog.store(tmp_path).prune(WORDS))

    with pytest.raises(eventlog.RunPruned):
        getattr(eventlog.Directory(tmp_path, disk=Late()), act)("r")


@pytest.mark.fault("a damaged tombstone")
def test_a_tombstone_that_cannot_be_read_still_keeps_the_id_and_is_not_forgotten(tmp_path: Path) -> None:
    """Its name says that there was a run, and a repeat could pay twice."""
    store = eventlog.store(tmp_path)
    for run in ("r", "other"):
        making.made(tmp_path, run)
    dict(store.prune({"r": {}, "other": {}}))
    (tmp_path / ".pruned/r").write_bytes(b"\0" * 100)
    assert store.forget(END) == []
    assert store.forget(END + timedelta(seconds=1), dry=True) == ["other"]
    assert store.forget(END + timedelta(seconds=1)) == ["other"]
    with pytest.raises(eventlog.RunPruned, match=r"was pruned$"):
        store.create("r", at=making.AT, events=[making.OPENING])
    store.create("other", at=making.AT, events=[making.OPENING]).close()


def _has_two_names(image: simdisk.Image) -> bool:
    names = [number for names in image.directories.values() for number in names.values() if number in image.directories]
    return len(names) > len(set(names))


class Became(msgspec.Struct):
    """A status."""

    what: str


class Blocks(simdisk.DiskProxy):
    """A disk with no block left but those that are given back: each directory takes one, a file one for each KiB."""

    def __init__(self, machine: simdisk.Machine) -> None:
        super().__init__(simdisk.Process(machine, 2))
        self._machine = machine
        self._most = self._used()

    def _used(self) -> int:
        named = {number for names in self._machine.directories.values() for number in names.values()}
        return sum(-(-len(self._machine.files.get(number, b"d")) // 1024) for number in named)

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Do it, or refuse what takes a block more than there are."""
        if verb == "mkdir" and self._used() >= self._most:
            raise OSError(errno.ENOSPC, "no room")
        if verb == "write_some":
            fd, data, offset = given
            size = self.inner.fstat(fd).st_size
            more = -(-max(size, offset + len(data)) // 1024) - -(-size // 1024)
            if self._used() + more > self._most:
                raise OSError(errno.ENOSPC, "no room")
        return super().forward(verb, *given, **named)


@pytest.mark.fault("full disk")
def test_runs_are_pruned_from_a_disk_without_a_free_block() -> None:
    """Whoever prunes may do so for that: the statuses of what is to go make room for the first tombstone."""
    machine = simdisk.Machine()
    store = eventlog.Directory(RUNS, disk=simdisk.Process(machine))
    for run in ("s", "t"):
        with store.create(run, at=making.AT, events=[making.OPENING]) as log:
            log.status = Became("done")
    full = Blocks(machine)
    with pytest.raises(OSError, match="no room"):
        full.mkdir(RUNS / "more")
    assert [*eventlog.Directory(RUNS, disk=full).prune({"s": {}, "t": {}})] == [("s", None), ("t", None)]
    assert sorted(_on(machine).forget(END + timedelta(days=1))) == ["s", "t"]
