"""A crash between any two steps of a fork: no fork or a whole one, and nothing done twice."""

import errno
import itertools
from pathlib import Path

import pytest

import eventlog
import runner
import runner.testing
from eventlog import simdisk
from tests.runs import scenes
from tests.runs.scenes import Shop
from tests.support.disks import CHANGES, Failing, failing
from tests.support.faulty_disk import Fault, FaultyDisk

pytestmark = [pytest.mark.fault("killed between two operations")]

SIGN = runner.testing.tool_calls(("sign", {"what": "a"}))


def parent(runs: Path, shop: Shop) -> None:
    """A run that has paid, and waits for a person."""
    pay = runner.testing.tool_calls(("pay", {"invoice": "i7", "ref": "x"}))
    scenes.start(shop, pay, SIGN, runs=runs)


def forked(runs: Path, monkeypatch: pytest.MonkeyPatch, disk: Failing) -> bool:
    """Fork the run on this disk; whether the process lived to see the end."""
    with monkeypatch.context() as patch:
        for verb in CHANGES:
            patch.setattr(eventlog.DISK, verb, getattr(disk, verb))
        try:
            runner.fork("p", at=2, runs=runs, new="f")
        except (simdisk.Killed, eventlog.LogError):
            return False
    return True


FULL = pytest.mark.full
AT_EACH_STEP = (
    pytest.param(simdisk.Killed(), True, id="killed"),
    pytest.param(failing(errno.ENOSPC), False, id="full once", marks=FULL),
    pytest.param(failing(errno.EIO), False, id="failed once", marks=FULL),
    pytest.param(failing(errno.EIO), True, id="failing", marks=FULL),
)


@pytest.mark.parametrize(("error", "lasting"), AT_EACH_STEP)
def test_a_death_or_an_error_at_every_step_leaves_no_fork_or_a_whole_one_and_never_two_runs_that_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, *, lasting: bool
) -> None:
    """The parent is stopped only when the fork lacks nothing but its name; made again, the fork is there."""
    seen: set[tuple[bool, bool]] = set()
    for step in range(200):
        runs, shop = tmp_path / f"{step}", Shop()
        parent(runs, shop)
        disk = Failing(step, error, lasting=lasting)
        forked(runs, monkeypatch, disk)
        exists = "f" in eventlog.store(runs).runs()
        stopped = runner.read_state("p", runs).stopped is not None
        seen.add((exists, stopped))
        if exists:
            assert stopped, f"both go on after {disk.failed}"
            assert eventlog.store(runs).verify("f").ok
        else:
            runner.fork("p", at=2, runs=runs, new="f")
        state = runner.read_state("f", runs)
        assert (state.parent, state.turns, len(state.fork_guard)) == ("p", 0, 1)
        with pytest.raises(runner.errors.Forked):
            runner.resume_sync("p", shop.agent(), runs=runs)
        if not disk.failed:
            break
    else:
        pytest.fail("it never came to its end")
    assert seen == {(False, False), (False, True), (True, True)}


def test_only_one_step_lies_between_the_parents_stop_and_the_forks_name(
    runs: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parent that is stopped without a fork is repaired by the same command; let it be as rare as it can."""
    parent(runs, shop)
    disk = Failing(-1, None)
    assert forked(runs, monkeypatch, disk)
    name = disk.steps.index(("rename", "seg-000001.jsonl"), disk.steps.index(("mkdir", "f")))
    assert ("write_some", "seg-000001.jsonl") in disk.steps[name - 5 : name]
    assert [verb for verb, _ in disk.steps[name - 4 : name]].count("rename") == 0


def test_a_fork_that_finds_no_room_leaves_its_parent_as_it_was(tmp_path: Path) -> None:
    """Whatever a fork needs room for is durable before its parent is stopped, the fork's head too."""
    refused = 0
    for nth in itertools.count(1):
        runs = tmp_path / f"{nth}"
        parent(runs, Shop())
        fault = Fault(verbs=("open", "write_some", "sync"), name=".tmp-", nth=nth, error=errno.ENOSPC)
        disk = FaultyDisk(eventlog.DISK, fault)
        try:
            runner.fork("p", at=2, runs=eventlog.Directory(runs, disk=disk), new="f")
        except eventlog.DiskFull:
            refused += 1
            assert eventlog.store(runs).runs() == ["p"]
            assert runner.read_state("p", runs).stopped is None
        if not disk.hit:
            break
    assert refused > 6
