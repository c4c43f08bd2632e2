"""One file's bytes on the disk: what is certainly there, and what may be there instead.

A power cut leaves each sector that was not synced as it was, or as any write since then made it, each independently of
the others. A file that grew may have any of its sizes, or one between them; a sector that was never written durably
may hold NULs or whatever a deleted file left there.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from eventlog.simdisk._trace import SECTOR

_PAGE: Final = 4096
_HOLE: Final = None
_NULS: Final = bytes(SECTOR)


def stale(sector: int) -> bytes:
    """Give what a sector that was never written may hold: text of a deleted file, a newline and no NUL in it."""
    return (b"left over in sector %d by a file that was deleted\n" % sector).ljust(SECTOR, b"~")


class Sectors:
    """The bytes of one file, by sectors. `seen` is what processes read."""

    def __init__(self, content: bytes = b"") -> None:
        """Begin with a file that is durable as it stands."""
        self.seen = bytearray(content)
        self._sure = _whole(content)
        self._sizes = [len(content)]
        self._versions: dict[int, list[bytes | None]] = {}

    def write(self, offset: int, data: bytes) -> None:
        before, end = len(self.seen), offset + len(data)
        if end > before:
            self._resize(end)
        self.seen[offset:end] = data
        self._touch(min(offset, before), end)

    def resize(self, size: int) -> None:
        before = len(self.seen)
        self._resize(size)
        self._touch(min(before, size), size)

    def sync(self) -> None:
        self._sure = _whole(self.seen)
        self._sizes = [len(self.seen)]
        self._versions.clear()

    def sizes(self) -> list[int]:
        """Give the sizes that the file may have, oldest first; while it grew, by whole pages or not, those between."""
        found: list[int] = []
        for low, high in pairwise([*self._sizes, self._sizes[-1]]):
            found.append(low)
            if low < high:
                found += sorted({(low + high) // 2, *range(low // _PAGE * _PAGE + _PAGE, high, _PAGE)})
        newest = self._sizes[-1]
        return [*dict.fromkeys(size for size in found if size != newest), newest]

    def uncertain(self) -> dict[int, list[bytes]]:
        """Give every uncertain sector's possible bytes, the newest last."""
        return {sector: found for sector in sorted(self._versions) if len(found := list(self._options(sector))) > 1}

    def content(self, size: int, chosen: dict[int, bytes]) -> bytes:
        """Give the file's bytes for one size and one choice for every uncertain sector."""
        found = bytearray(self._sure.ljust(_up(size), b"\0"))
        for sector in self._versions:
            if sector * SECTOR < size:
                data = chosen[sector] if sector in chosen else next(iter(self._options(sector)))
                found[sector * SECTOR : (sector + 1) * SECTOR] = data
        return bytes(memoryview(found)[:size])

    def _options(self, sector: int) -> Iterator[bytes]:
        seen = set()
        for version in self._versions[sector]:
            for data in (stale(sector), _NULS) if version is _HOLE else (version,):
                if data not in seen:
                    seen.add(data)
                    yield data

    def _resize(self, size: int) -> None:
        if size < len(self.seen):
            del self.seen[size:]
        else:
            self.seen.extend(bytes(size - len(self.seen)))
        self._sizes.append(size)

    def _touch(self, start: int, end: int) -> None:
        for sector in range(start // SECTOR, -(-end // SECTOR)):
            at = sector * SECTOR
            if sector not in self._versions:
                sure = bytes(self._sure[at : at + SECTOR])
                self._versions[sector] = [sure or _HOLE]
            self._versions[sector].append(bytes(self.seen[at : at + SECTOR]).ljust(SECTOR, b"\0"))


def _whole(content: bytes | bytearray) -> bytes:
    """Give a file's bytes in whole sectors."""
    return bytes(content).ljust(_up(len(content)), b"\0")


def _up(size: int) -> int:
    return -(-size // SECTOR) * SECTOR
