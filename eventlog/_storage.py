"""What a directory stands on, and what a log there can be trusted to survive.

A sync that returned keeps its promise only where the file system passes it on to a disk. Where that is not known, the
header says "killed process" instead of "power loss", so nobody is promised more than there is. On a network file
system a lock may not exclude another machine, so a writer is refused there unless it insists.
"""

from pathlib import Path
from typing import Final

import msgspec

from eventlog._disk import Disk
from eventlog._line import Storage
from eventlog.errors import NetworkStorage

_DURABLE: Final = frozenset({"apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "xfs", "zfs"})
_NETWORK: Final = frozenset({
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs",
    "webdav",
})  # fmt: skip
_LOSES_SYNCS: Final = frozenset({"nobarrier", "barrier=0", "volatile", "fsync=nobarrier", "sync=disabled"})


class Mount(msgspec.Struct, frozen=True):
    """One row of the table of mounts."""

    point: str
    kind: str
    options: frozenset[str]


def linux_mounts(table: str) -> list[Mount]:
    """Read /proc/self/mountinfo; rows that are not understood are left out."""
    mounts = []
    for row in table.split("\n"):
        before, dash, after = row.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if dash and len(left) > 5 and right[0]:  # noqa: PLR2004 - the columns that proc(5) names
            options = {*left[5].split(","), *(right[2].split(",") if len(right) > 2 else ())}  # noqa: PLR2004 - as above
            mounts.append(Mount(_plain(left[4]), right[0], frozenset(options)))
    return mounts


def other_mounts(table: str) -> list[Mount]:
    """Read the output of mount(8) on macOS and BSD: `<device> on <point> (<kind>, <option>, ...)`."""
    mounts = []
    for row in table.split("\n"):
        left, bracket, inside = row.rpartition(" (")
        _, on, point = left.partition(" on ")
        words = [word.strip() for word in inside.rstrip(")").split(",")]
        if bracket and on and words[0]:
            mounts.append(Mount(point, words[0], frozenset(words[1:])))
    return mounts


def judge(path: str, mounts: list[Mount]) -> Storage:
    """Say what a path (absolute, no links) stands on; a later mount on the same point hides an earlier one."""
    best: Mount | None = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    if best is None:
        return Storage("unknown", "killed process", "the table of mounts does not name it")
    if best.kind in _NETWORK:
        return Storage(best.kind, "killed process", "a network file system, accepted by force")
    if lost := sorted(best.options & _LOSES_SYNCS):
        return Storage(best.kind, "killed process", f"mounted with {', '.join(lost)}")
    if best.kind not in _DURABLE:
        return Storage(best.kind, "killed process", f"{best.kind} is not known to keep a sync through a power cut")
    return Storage(best.kind, "power loss")


def look(disk: Disk, path: Path, *, force: bool) -> Storage:
    """Look at what a directory, or the nearest one above it that exists, stands on.

    Raises `NetworkStorage` unless forced. A table that cannot be read promises no more than a killed process.
    """
    try:
        real, table = disk.real(path), disk.mounts()
    except OSError as error:
        return Storage("unknown", "killed process", f"the table of mounts cannot be read: {error}")
    mounts = linux_mounts(table) if " - " in table else other_mounts(table)
    storage = judge(real, mounts)
    if storage.kind in _NETWORK and not force:
        raise NetworkStorage(str(path), storage.kind)
    return storage


def _plain(text: str) -> str:
    """Undo the octal escapes of mountinfo."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
