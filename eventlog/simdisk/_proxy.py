"""A disk in front of another one, to make your own of: to inject a fault, or to take a safeguard out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import eventlog

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES: Final = (
    "open",
    "write_some",
    "truncate",
    "datasync",
    "sync",
    "sync_dir",
    "rename",
    "link",
    "unlink",
    "rmdir",
    "mkdir",
)
"""Verbs that may change what is on a disk; `open` counts when it may make or write a file."""


class DiskProxy(eventlog.Disk):
    """Forwards every verb to `inner`. Subclass it and override a few, or `forward`, through which each of them goes."""

    def __init__(self, inner: eventlog.Disk) -> None:
        self.inner = inner
        self._names: dict[int, str] = {}

    def name(self, fd: int) -> str:
        """Give the name of an open file: the one it was opened by, or was renamed to since."""
        return self._names.get(fd, "")

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Have `inner` do it."""
        result = getattr(self.inner, verb)(*given, **named)
        if verb == "open":
            self._names[result] = given[0].name
        elif verb == "rename":
            source, target = (path.name for path in given)
            self._names = {fd: target if name == source else name for fd, name in self._names.items()}
        return result

    def kernel_flushes(self) -> None:
        """Give none: each flush must come by `datasync`, where a fault may lie."""


def _forwarding(verb: str) -> Callable[..., Any]:
    def forwarding(self: DiskProxy, *given: Any, **named: Any) -> Any:
        return self.forward(verb, *given, **named)

    return forwarding


for _verb in vars(eventlog.Disk):  # `pwrite` stays a loop over `write_some`, which completes a short write
    if not _verb.startswith("_") and _verb not in ("kernel_flushes", "pwrite"):
        setattr(DiskProxy, _verb, _forwarding(_verb))


class Killed(BaseException):
    """The process ends here, as by SIGKILL: whatever it would do later, even in `finally`, does nothing."""
