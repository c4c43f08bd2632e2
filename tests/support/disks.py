"""Disks that fail: the real one, with every operation that changes something counted, and one made to go wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from eventlog._disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHANGES = ("open", "write_some", "truncate", "datasync", "sync", "sync_dir", "rename", "unlink", "rmdir", "mkdir")


class Quick(Disk):
    """Syncs nothing: the death of a process leaves the page cache, so where only processes die a sync is only slow."""

    def datasync(self, fd: int) -> None:
        """Leave it to the page cache."""

    def sync(self, fd: int) -> None:
        """Leave it to the page cache."""

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:  # noqa: ARG002 - the verb's signature
        """Leave it to the page cache."""
        return True


class Traced(Quick):
    """Keeps the order of operations as `(verb, name)`, temporary names shortened to `.tmp-<what they become>`."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        self.names: dict[int, str] = {}
        for verb in CHANGES:
            setattr(self, verb, self._traced(verb, getattr(self, verb)))

    def before(self, verb: str, name: str) -> None:
        """Do something just before an operation."""

    def after(self, verb: str, name: str) -> None:
        """Do something just after an operation."""

    def _traced(self, verb: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def step(target: int | Path, *args: object, **options: object) -> object:
            name = self.names[target] if isinstance(target, int) else plain(target.name)
            if verb == "rename":
                name = plain(args[0].name)  # type: ignore[attr-defined] # a rename's second argument is a path
            if verb == "open" and not (options.get("write") or options.get("new")):
                return act(target, *args, **options)
            self.before(verb, name)
            result = act(target, *args, **options)
            if verb == "open":
                assert isinstance(result, int)
                self.names[result] = name
            if verb == "rename":
                self.names = {fd: name if was == f".tmp-{name}" else was for fd, was in self.names.items()}
            self.steps.append((verb, name))
            self.after(verb, name)
            return result

        return step


class Failing(Traced):
    """Raises `error` instead of the operation numbered `at` (from 0); every time from there on when `lasting`."""

    def __init__(self, at: int, error: BaseException | None, *, lasting: bool = False) -> None:
        super().__init__()
        self.at, self.error, self.lasting, self.count = at, error, lasting, -1
        self.failed, self.acknowledged = "", -1

    def before(self, verb: str, name: str) -> None:
        """Count, and fail."""
        self.count += 1
        if self.error is not None and (self.count == self.at or (self.lasting and self.count > self.at)):
            self.failed = self.failed or f"{verb} {name}"
            raise self.error


class Short(Disk):
    """Writes at most `size` bytes at a time."""

    def __init__(self, size: int) -> None:
        self.size = size

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Take only a part."""
        return super().write_some(fd, memoryview(data)[: self.size], offset)


class Lying(Disk):
    """Says `count` for every write to a segment once armed, whatever it wrote."""

    def __init__(self, count: int) -> None:
        self.count, self.armed = count, False

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write, and lie."""
        wrote = super().write_some(fd, data, offset)
        return len(data) + self.count if self.armed else wrote


def plain(name: str) -> str:
    """Leave the random part out of a temporary name."""
    return ".tmp-" + name.split("-", 2)[2] if name.startswith(".tmp-") else name


def failing(number: int) -> OSError:
    """Make the system's error of a number."""
    return OSError(number, os.strerror(number))
