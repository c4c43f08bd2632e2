"""The simulator itself: what it lets a disk hold, no less and no more. A sweep is worth what these say."""

from __future__ import annotations

import errno
import inspect
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog import simdisk
from eventlog.simdisk import DiskProxy, Model, Process
from tests.eventlog.powerloss.kept import keep
from tests.support.faulty_disk import Fault, FaultyDisk, Machine, Pages

MODELS: tuple[Model, ...] = ("ext4", "posix")
OLD, NEW, NEWER = b"o" * 512, b"n" * 512, b"m" * 512


def made(name: str = "/f", content: bytes = b"") -> tuple[Machine, Process, int]:
    """Make a durable file and give it open."""
    machine = Machine()
    disk = Process(machine)
    fd = disk.open(Path(name), write=True, new=True)
    disk.pwrite(fd, content, 0)
    disk.sync(fd)
    disk.sync_dir(Path("/"))
    return machine, disk, fd


def contents(machine: Machine, model: Model = "posix", *, name: str = "/f", limit: int = 4096) -> set[bytes | None]:
    """Give what a file may hold after a cut now; None where it has no name."""
    last = len(machine.trace)
    cuts = simdisk.cuts(machine.trace, model, start=machine.image, first=last, limit=limit)
    return {cut.image.paths().get(name) for cut in cuts}


def names(machine: Machine, model: Model) -> set[tuple[str, ...]]:
    """Give which names there may be after a cut now."""
    cuts = simdisk.cuts(machine.trace, model, start=machine.image, first=len(machine.trace), limit=4096)
    return {tuple(sorted(cut.image.paths())) for cut in cuts}


@pytest.mark.parametrize("double", [Process, DiskProxy])
def test_no_verb_of_the_seam_reaches_the_real_disk_by_accident(double: type[eventlog.Disk]) -> None:
    """A verb added to `Disk` must be answered from memory, and handed on, or a sweep would leave the simulation.

    `pwrite` is the one exception: it is a loop over `write_some`, the same on every disk.
    """
    verbs = {name for name, _ in inspect.getmembers(eventlog.Disk, inspect.isfunction) if not name.startswith("_")}
    assert verbs - vars(double).keys() - {"pwrite"} == set()


def test_the_manual_is_true() -> None:
    """The example in the package's docstring runs as it stands, and comes to what it says."""
    block = "\n".join(line[4:] for line in (simdisk.__doc__ or "").split("\n") if line.startswith("    "))
    given: dict[str, Any] = {"simdisk": simdisk, "eventlog": eventlog, "now": datetime(2026, 11, 29, tzinfo=UTC)}
    exec(block, given)  # noqa: S102 - our own documentation
    assert len(given["lines"]) == 3


def test_each_sector_is_old_or_new_by_itself() -> None:
    """A cut may keep any of the sectors of a write, in any combination, and nothing within a sector."""
    machine, disk, fd = made(content=OLD * 3)
    disk.pwrite(fd, NEW * 3, 0)
    assert contents(machine) == {a + b + c for a in (OLD, NEW) for b in (OLD, NEW) for c in (OLD, NEW)}


def test_every_version_since_the_sync_is_possible() -> None:
    """A sector written twice may hold either version, or the one before both."""
    machine, disk, fd = made(content=OLD)
    disk.pwrite(fd, NEW, 0)
    disk.pwrite(fd, NEWER, 0)
    assert contents(machine) == {OLD, NEW, NEWER}


def test_a_sync_settles_a_file_and_no_other() -> None:
    """What was synced has one content; what was not stays in question."""
    machine, disk, fd = made(content=OLD)
    other = disk.open(Path("/g"), write=True, new=True)
    disk.pwrite(other, NEW, 0)
    disk.pwrite(fd, NEW, 0)
    disk.datasync(fd)
    assert contents(machine) == {NEW}
    assert len(contents(machine, name="/g")) > 2


def test_a_file_that_grew_may_have_any_size_and_stale_bytes() -> None:
    """Sizes between the old and the new one, and a deleted file's text or NULs where nothing was written durably."""
    machine, disk, fd = made(content=OLD)
    disk.pwrite(fd, NEW * 20, 512)
    found = contents(machine)
    sizes = {len(content) for content in found if content is not None}
    assert {512, 512 * 21, 4096, 8192} <= sizes
    tails = {content[-512:] for content in found if content is not None and len(content) == 512 * 21}
    assert NEW in tails
    assert bytes(512) in tails
    assert any(b"deleted" in tail for tail in tails)


def test_a_cut_file_may_come_back_long() -> None:
    """A truncation that was not synced may be lost, and then the old bytes are there again."""
    machine, disk, fd = made(content=OLD * 2)
    disk.truncate(fd, 100)
    assert {len(content or b"") for content in contents(machine)} == {100, 1024}
    disk.sync(fd)
    assert contents(machine) == {OLD[:100]}


def test_a_cut_comes_before_a_sync_returns() -> None:
    """A sync that has not returned promises nothing: the images before it are the images during it."""
    machine, disk, fd = made(content=OLD)
    disk.pwrite(fd, NEW, 0)
    before = len(machine.trace)
    disk.datasync(fd)
    cuts = list(simdisk.cuts(machine.trace, first=before))
    assert {cut.image.paths()["/f"] for cut in cuts if cut.after == before} == {OLD, NEW}
    assert {cut.image.paths()["/f"] for cut in cuts if cut.after == before + 1} == {NEW}


def test_ext4_keeps_names_in_one_order_and_posix_any_subset() -> None:
    """Two files made one after the other: on ext4 the second never comes alone."""
    machine, disk, _ = made()
    for name in ("/g", "/h"):
        disk.open(Path(name), write=True, new=True)
    assert names(machine, "ext4") == {("/f",), ("/f", "/g"), ("/f", "/g", "/h")}
    assert names(machine, "posix") == names(machine, "ext4") | {("/f", "/h")}


@pytest.mark.parametrize("model", MODELS)
def test_a_rename_replaces_in_one_step(model: Model) -> None:
    """The target is the old file or the new one, never missing; on POSIX the source's name may survive the rename."""
    machine, disk, _ = made(content=OLD)
    fd = disk.open(Path("/t"), write=True, new=True)
    disk.pwrite(fd, NEW, 0)
    disk.sync(fd)
    disk.sync_dir(Path("/"))
    disk.rename(Path("/t"), Path("/f"))
    assert contents(machine, model) == {OLD, NEW}
    both = {("/f", "/t"), ("/f",)}
    assert names(machine, model) == both
    cuts = simdisk.cuts(machine.trace, "posix", first=len(machine.trace))
    assert any(len(set(cut.image.directories[1].values())) == 1 and len(cut.image.directories[1]) == 2 for cut in cuts)


def test_a_sync_of_a_file_commits_names_on_ext4_only() -> None:
    """A new or grown file's sync commits the journal; one that only overwrote does not."""
    machine, disk, fd = made(content=OLD)
    disk.open(Path("/g"), write=True, new=True)
    disk.pwrite(fd, NEW, 0)
    disk.datasync(fd)
    assert names(machine, "ext4") == {("/f",), ("/f", "/g")}
    disk.pwrite(fd, NEW, 512)
    disk.datasync(fd)
    assert names(machine, "ext4") == {("/f", "/g")}
    assert names(machine, "posix") == {("/f",), ("/f", "/g")}


def test_a_directory_sync_settles_its_own_names_only_on_posix() -> None:
    """A file's name is durable when its directory was synced, and reachable when the directory's own name is."""
    machine = Machine()
    disk = Process(machine)
    disk.mkdir(Path("/d"))
    disk.open(Path("/d/f"), write=True, new=True)
    disk.sync_dir(Path("/d"))
    assert names(machine, "posix") == {(), ("/d/f",)}
    assert names(machine, "ext4") == {("/d/f",)}
    disk.sync_dir(Path("/"))
    assert names(machine, "posix") == {("/d/f",)}


def failed(left: Pages) -> tuple[Machine, Process, int]:
    """Overwrite a durable file and fail its sync."""
    machine, disk, fd = made(content=OLD)
    disk.pwrite(fd, NEW, 0)
    faulty = FaultyDisk(disk, Fault(verbs=("datasync",), error=errno.EIO, pages=left))
    with pytest.raises(OSError, match="Input/output"):
        faulty.datasync(fd)
    return machine, disk, fd


def test_after_a_failed_sync_a_second_one_lies() -> None:
    """The pages are readable and called clean, so a later sync returns and writes nothing (fsyncgate)."""
    machine, disk, fd = failed("clean")
    assert disk.pread(fd, 512, 0) == NEW
    disk.datasync(fd)
    assert contents(machine) == {OLD, NEW}


def test_after_a_failed_sync_the_cache_may_fall_back() -> None:
    """Btrfs shows the old bytes again; a second sync has nothing to write."""
    machine, disk, fd = failed("back")
    assert disk.pread(fd, 512, 0) == OLD
    assert contents(machine) == {OLD}


def test_after_a_failed_sync_the_pages_may_still_be_dirty() -> None:
    """Then a second sync may succeed; until it does, either content may be there."""
    machine, disk, fd = failed("dirty")
    assert contents(machine) == {OLD, NEW}
    disk.datasync(fd)
    assert contents(machine) == {NEW}


def test_a_death_leaves_the_page_cache_and_takes_the_locks() -> None:
    """SIGKILL loses nothing that was written; the power does. The kernel drops the locks of the dead."""
    machine, disk, fd = made(content=OLD)
    assert disk.try_lock(fd)
    other = Process(machine, 2)
    theirs = other.open(Path("/f"), write=True)
    assert not other.try_lock(theirs)
    disk.pwrite(fd, NEW, 0)
    disk.die()
    assert other.try_lock(theirs)
    assert other.pread(theirs, 512, 0) == NEW
    assert OLD in contents(machine)


def test_after_killed_nothing_happens_any_more() -> None:
    """A dead process's `finally` closes no file and removes no name."""
    _, disk, fd = made(content=OLD * 2)
    faulty = FaultyDisk(disk, Fault(verbs=("write_some",), error=simdisk.Killed, takes=100))
    with pytest.raises(simdisk.Killed):
        faulty.pwrite(fd, NEW * 2, 0)
    faulty.close(fd)
    with pytest.raises(simdisk.Killed):
        faulty.unlink(Path("/f"))
    with pytest.raises(simdisk.Killed):
        faulty.sync(fd)
    assert disk.pread(fd, 1024, 0) == NEW[:100] + OLD[100:] + OLD


def test_a_record_can_begin_on_an_image() -> None:
    """A crash inside a recovery: what the first cut left is durable, and only the rest is in question."""
    machine, disk, fd = made(content=OLD * 2)
    disk.pwrite(fd, NEW * 2, 0)
    torn = next(
        cut.image
        for cut in simdisk.cuts(machine.trace, first=len(machine.trace))
        if cut.image.paths()["/f"] == NEW + OLD
    )
    after = Machine(torn)
    again = Process(after)
    again.pwrite(again.open(Path("/f"), write=True), NEWER, 512)
    assert contents(after) == {NEW + OLD, NEW + NEWER}


def test_an_image_is_written_with_its_links_and_kept_with_its_report(tmp_path: Path) -> None:
    """A failing image can be looked at, and opened, like any directory; the report says how it came about."""
    machine, disk, fd = made("/f", OLD)
    disk.rename(Path("/f"), Path("/g"))
    disk.pwrite(fd, NEW, 0)
    cuts = list(simdisk.cuts(machine.trace, first=len(machine.trace)))
    cut = next(cut for cut in cuts if len(cut.image.paths()) == 2 and cut.image.paths()["/g"] == NEW)
    place = keep(cut, tmp_path, why="it is broken", trace=machine.trace, repeat="python -m something")
    assert (place / "disk/f").read_bytes() == NEW
    assert (place / "disk/f").stat().st_ino == (place / "disk/g").stat().st_ino
    report = (place / "REPORT").read_text()
    assert report.startswith("it is broken\n\nrepeat: python -m something\n")
    assert report.endswith("    5 renamed a file to g\n    6 wrote 512 bytes at 0 of /g\n")


def test_the_same_arguments_give_the_same_images_and_another_seed_others() -> None:
    """Where not all combinations can be taken, the drawn ones must be found again by their seed."""
    machine, disk, fd = made(content=OLD * 64)
    disk.pwrite(fd, NEW * 64, 0)

    def keys(seed: int) -> list[bytes]:
        return [cut.image.key for cut in simdisk.cuts(machine.trace, limit=50, seed=seed)]

    assert keys(1) == keys(1)
    assert set(keys(1)) != set(keys(2))
    assert 40 < len(keys(1)) < 80


def test_disks_of_files_that_do_not_matter_are_not_told_apart() -> None:
    """The lock's content and a temporary file's are drawn, not enumerated: they would only multiply what is counted."""

    def images(*names: str) -> int:
        machine = Machine()
        disk = Process(machine)
        for name in names:
            disk.pwrite(disk.open(Path(name), write=True, new=True), NEW * 4, 0)
        disk.sync_dir(Path("/"))
        cuts = simdisk.cuts(machine.trace, first=len(machine.trace))
        return len({tuple(cut.image.paths().values()) for cut in cuts})

    assert images("/lock", "/.tmp-1-x") == 1
    assert images("/head", "/.tmp-1-x") > 5
    assert images("/head", "/seg-000001.jsonl") > 30
