"""A disk in front of another one: a test subclasses it to inject a fault, or to take a safeguard out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import eventlog

OWN = ("open", "rename", "pwrite", "kernel_flushes")
"""The verbs that are not simply forwarded. `pwrite` stays a loop over `write_some`, which completes a short write."""


class DiskProxy(eventlog.Disk):
    """Forwards every verb to `inner`. Subclass it and override a few."""

    def __init__(self, inner: eventlog.Disk) -> None:
        self.inner = inner
        self._names: dict[int, str] = {}

    def name(self, fd: int) -> str:
        """Give the name of an open file: the one it was opened by, or was renamed to since."""
        return self._names.get(fd, "")

    def open(self, path: Path, **how: Any) -> int:
        fd = self.inner.open(path, **how)
        self._names[fd] = path.name
        return fd

    def kernel_flushes(self) -> None:
        """Give none: each flush must come by `datasync`, where a fault may lie."""

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        self.inner.rename(source, target, within=within)
        self._names = {fd: target.name if name == source.name else name for fd, name in self._names.items()}


def _forwarding(verb: str) -> Callable[..., Any]:
    def forward(self: DiskProxy, *given: Any, **named: Any) -> Any:
        return getattr(self.inner, verb)(*given, **named)

    return forward


for _verb in vars(eventlog.Disk):
    if not _verb.startswith("_") and _verb not in OWN:
        setattr(DiskProxy, _verb, _forwarding(_verb))
