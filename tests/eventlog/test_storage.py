"""What a log stands on: named at creation, never promised more than is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _storage
from eventlog._disk import Disk
from tests.eventlog.making import AT, OPENING, goes_on, made
from tests.support.disks import failing

if TYPE_CHECKING:
    from pathlib import Path

LINUX = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 0:40 / /tmp rw - tmpfs tmpfs rw
25 22 0:41 / /net/a\\040b rw shared:7 master:1 - nfs4 server:/x rw,vers=4.2
26 22 0:42 / /fast rw - ext4 /dev/vdb rw,nobarrier
27 22 0:43 / /layers rw - overlay overlay rw,lowerdir=/a,volatile
28 22 0:44 / /layer rw - overlay overlay rw,lowerdir=/a
29 22 0:45 / /ssh rw - fuse.sshfs host:/ rw
30 22 0:46 / /twice rw - tmpfs tmpfs rw
31 22 0:47 / /twice rw - xfs /dev/vdc rw
this row is not understood
"""
MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)
not a mount
"""


class Mounted(Disk):
    """A disk with another table of mounts, on which every path seems to be `at`."""

    def __init__(self, table: str, at: str) -> None:
        self.table, self.at = table, at

    def mounts(self) -> str:
        """Give the table."""
        return self.table

    def real(self, path: Path) -> str:  # noqa: ARG002 - the verb's signature
        """Give the place."""
        return self.at


@pytest.mark.parametrize(
    ("table", "path", "kind", "survives", "why"),
    [
        (LINUX, "/home/me/runs", "ext4", "power loss", ""),
        (LINUX, "/tmp/x", "tmpfs", "killed process", "not known to keep"),  # noqa: S108 - a row of the table
        (LINUX, "/fastest", "ext4", "power loss", ""),
        (LINUX, "/fast", "ext4", "killed process", "nobarrier"),
        (LINUX, "/layers/x", "overlay", "killed process", "volatile"),
        (LINUX, "/layer/x", "overlay", "killed process", "not known to keep"),
        (LINUX, "/twice/x", "xfs", "power loss", ""),
        (MACOS, "/System/Volumes/Data/Users/me", "apfs", "power loss", ""),
        ("", "/x", "unknown", "killed process", "does not name it"),
    ],
)
def test_what_a_log_survives_is_written_in_its_header(
    tmp_path: Path,
    table: str,
    path: str,
    kind: str,
    survives: str,
    why: str,
) -> None:
    """Only a file system known to pass a sync on to a disk promises a power cut; all else says why it does not."""
    eventlog.Directory(tmp_path, disk=Mounted(table, path)).create("r", at=AT, events=[OPENING]).close()
    storage = eventlog.store(tmp_path).read("r").storage
    assert storage is not None
    assert (storage.kind, storage.survives) == (kind, survives)
    assert why in storage.why
    assert bool(storage.why) == bool(why)


@pytest.mark.parametrize(
    ("table", "path", "kind"),
    [(LINUX, "/net/a b/runs", "nfs4"), (LINUX, "/ssh", "fuse.sshfs"), (MACOS, "/Volumes/share/x", "smbfs")],
)
def test_network_file_systems_are_refused_unless_forced(tmp_path: Path, table: str, path: str, kind: str) -> None:
    """A lock may not exclude another machine there; nothing is made, and forcing is written down."""
    disk = Mounted(table, path)
    with pytest.raises(eventlog.NetworkStorage, match=kind):
        eventlog.Directory(tmp_path / "runs", disk=disk).create("r", at=AT, events=[OPENING])
    assert not (tmp_path / "runs").exists()
    eventlog.Directory(tmp_path / "runs", force=True, disk=disk).create("r", at=AT, events=[OPENING]).close()
    with pytest.raises(eventlog.NetworkStorage):
        eventlog.Directory(tmp_path / "runs", disk=disk).open("r")
    eventlog.Directory(tmp_path / "runs", force=True, disk=disk).open("r").close()
    verdict = eventlog.store(tmp_path / "runs").verify("r")
    assert verdict.storage == eventlog.Storage(kind, "killed process", "a network file system, accepted by force")
    assert any("not surely a power cut" in finding for finding in verdict.findings)


def test_a_file_system_that_refuses_to_sync_directories(tmp_path: Path) -> None:
    """A name may be lost in a power cut there, so the header must not promise one."""

    class Refusing(Disk):
        def mounts(self) -> str:
            return LINUX

        def real(self, path: Path) -> str:  # noqa: ARG002 - the verb's signature
            return "/"

        def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:  # noqa: ARG002 - the verb's signature
            return False

    eventlog.Directory(tmp_path, disk=Refusing()).create("r", at=AT, events=[OPENING]).close()
    storage = eventlog.store(tmp_path).read("r").storage
    assert storage == eventlog.Storage("ext4", "killed process", "the file system refuses to sync directories")
    assert goes_on(tmp_path, disk=Refusing()).seq == 2


def test_a_table_of_mounts_that_cannot_be_read(tmp_path: Path) -> None:
    """What cannot be known is not promised, and is no reason to refuse."""

    class Blind(Disk):
        def mounts(self) -> str:
            raise failing(2)

    eventlog.Directory(tmp_path, disk=Blind()).create("r", at=AT, events=[OPENING]).close()
    storage = eventlog.store(tmp_path).read("r").storage
    assert storage is not None
    assert (storage.kind, storage.survives) == ("unknown", "killed process")


def test_this_machine_has_a_table_of_mounts_that_names_the_directory(tmp_path: Path) -> None:
    """The parsers are tested on text; this one run of the real thing shows that the text is what the system gives."""
    made(tmp_path)
    storage = eventlog.store(tmp_path).read("r").storage
    assert storage is not None
    assert storage.kind != "unknown"
    assert _storage.look(Disk(), tmp_path, force=True) == storage
