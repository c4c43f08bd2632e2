"""A machine whose disk is in memory: what its processes see, and the record of what they asked the disk to do.

Processes share the page cache: what one wrote the next one reads, synced or not, until the power goes. A process that
dies takes its open files and its locks with it and nothing else. So a death and a power cut are different things here,
as they are outside: `Process.die` for the first, `cuts(machine.trace, ...)` for the second.
"""

import errno
import hashlib
import os
import stat
from pathlib import PurePath

from eventlog.simdisk._image import EMPTY, Image
from eventlog.simdisk._trace import ROOT, Change, Named, Op, Sized, Synced, Wrote

_DEVICE = 1


class Machine:
    """Files and directories in memory. `trace` is what changed since the machine began, `image` what it began on.

    `seed` makes the names of temporary files and whatever else is drawn: the same seed, the same bytes.
    """

    def __init__(self, image: Image = EMPTY, *, seed: int = 0) -> None:
        self.image, self.trace = image, list[Op]()
        self.directories = {number: dict(names) for number, names in image.directories.items()}
        self.files = {number: bytearray(data) for number, data in image.files.items()}
        self.locks: dict[int, dict[int, bool]] = {}
        self._next = max([ROOT, *image.directories, *image.files]) + 1
        self._seed, self._drawn = seed, 0

    def find(self, path: PurePath | str) -> int:
        """Give the number of what has a path. Raises `FileNotFoundError` and `NotADirectoryError`."""
        number, directories = ROOT, self.directories
        for part in str(path).split("/"):
            if not part:
                continue
            try:
                number = directories[number][part]
            except KeyError:
                if number in directories:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
        return number

    def directory(self, path: PurePath | str) -> int:
        """Give the number of a directory. Raises also `NotADirectoryError`."""
        number = self.find(path)
        if number not in self.directories:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        return number

    def make(self, path: PurePath, *, directory: bool) -> int:
        """Make an empty file or directory under a name that is free, and give its number."""
        parent = self.directory(path.parent)
        number, self._next = self._next, self._next + 1
        if directory:
            self.directories[number] = {}
        else:
            self.files[number] = bytearray()
        self.directories[parent][path.name] = number
        self.trace.append(Named((Change(parent, path.name, number),), number if directory else None))
        return number

    def rename(self, source: PurePath, target: PurePath) -> None:
        """Give a file another name, taking it from what had it; or a directory."""
        here, there, number = self.directory(source.parent), self.directory(target.parent), self.find(source)
        del self.directories[here][source.name]
        self.directories[there][target.name] = number
        self.trace.append(Named((Change(there, target.name, number), Change(here, source.name, None))))

    def link(self, source: PurePath, target: PurePath) -> None:
        """Give a file one more name, unless something has it."""
        number, there = self.find(source), self.directory(target.parent)
        if target.name in self.directories[there]:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        self.directories[there][target.name] = number
        self.trace.append(Named((Change(there, target.name, number),)))

    def unlink(self, path: PurePath) -> None:
        parent, number = self.directory(path.parent), self.find(path)
        if number in self.directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        del self.directories[parent][path.name]
        self.trace.append(Named((Change(parent, path.name, None),)))

    def rmdir(self, path: PurePath) -> None:
        parent, number = self.directory(path.parent), self.directory(path)
        if self.directories[number]:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        del self.directories[parent][path.name]
        self.trace.append(Named((Change(parent, path.name, None),)))

    def write(self, number: int, offset: int, data: bytes) -> None:
        """Write into a file; a gap up to `offset` is NULs."""
        content = self.files[number]
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data
        self.trace.append(Wrote(number, offset, data))

    def resize(self, number: int, size: int) -> None:
        """Cut a file, or extend it by NULs."""
        content = self.files[number]
        del content[size:]
        content.extend(bytes(size - len(content)))
        self.trace.append(Sized(number, size))

    def sync(self, number: int) -> None:
        """Sync a file, or a directory."""
        self.trace.append(Synced(number))

    def status(self, number: int) -> os.stat_result:
        """Give what `stat` says of a file or directory."""
        if number in self.directories:
            return os.stat_result((stat.S_IFDIR | 0o700, number, _DEVICE, 2, 0, 0, 0, 0, 0, 0))
        links = sum(found == number for names in self.directories.values() for found in names.values())
        size = len(self.files[number])
        return os.stat_result((stat.S_IFREG | 0o600, number, _DEVICE, links, 0, 0, size, 0, 0, 0))

    def random(self, size: int) -> str:
        """Give the next `size` drawn bytes in hex."""
        self._drawn += 1
        return hashlib.shake_128(f"{self._seed}:{self._drawn}".encode()).hexdigest(size)
