"""An image: what a disk may hold after a power cut, whole, as the next boot finds it.

Two names may stand for one file, as they do while half of a rename is durable, so an image keeps names and contents
apart. Its key says whether two images are the same to a reader of the disk.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from eventlog.simdisk._trace import ROOT


def disposable(name: str) -> bool:
    """Tell whether a file of a run's directory has no content that matters: its lock, and temporary files."""
    return name == "lock" or name.startswith(".tmp-")


@dataclass(frozen=True)
class Image:
    """Directories (number → name → number) and files (number → bytes); number 1 is the directory `/`."""

    directories: dict[int, dict[str, int]]
    files: dict[int, bytes]

    def walk(self, prefix: str = "", directory: int = ROOT) -> Iterator[tuple[str, int]]:
        """Give every path (`/runs/r/head`) with its number, a directory before what it holds, names sorted."""
        for name, number in sorted(self.directories[directory].items()):
            path = f"{prefix}/{name}"
            yield path, number
            if number in self.directories:
                yield from self.walk(path, number)

    def paths(self) -> dict[str, bytes]:
        """Give every file's path and bytes."""
        return {path: self.files[number] for path, number in self.walk() if number in self.files}

    @cached_property
    def key(self) -> bytes:
        """16 bytes that differ for images that differ in more than the content of `disposable` files."""
        digest = hashlib.blake2b(digest_size=16)
        for path, number in self.walk():
            content = self.files.get(number, b"")
            digest.update(b"%d %b\0" % (len(content), path.encode()))
            if not disposable(path.rpartition("/")[2]):
                digest.update(content)
        return digest.digest()


EMPTY: Final = Image({ROOT: {}}, {})
"""A disk that holds nothing yet."""
