"""Log lines for the edges.

The library configures nothing: a program that configured structlog gets our lines there, any other gets them through
the standard logger named `refold`, which prints nothing unless the program says so. structlog is not imported here,
because that takes longer than everything else together and pulls in what else is installed; a program that configured
it has imported it.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

_STANDARD = logging.getLogger("refold")
_STANDARD.addHandler(logging.NullHandler())  # without it, warnings land on a user's stderr


class _Plain:
    """The standard logger, spoken to as one of structlog's."""

    def __init__(self, bound: dict[str, object]) -> None:
        self._bound = bound

    def info(self, event: str, **said: object) -> None:
        self._say(logging.INFO, event, said)

    def warning(self, event: str, **said: object) -> None:
        self._say(logging.WARNING, event, said)

    def _say(self, level: int, event: str, said: dict[str, object]) -> None:
        if _STANDARD.isEnabledFor(level):
            facts = "".join(f" {name}={value!r}" for name, value in {**self._bound, **said}.items())
            _STANDARD.log(level, "%s%s", event, facts)


def logger(**bound: object) -> Any:
    """A logger with these values bound: structlog's where the program configured it, else the standard one."""
    structlog = sys.modules.get("structlog")
    if structlog is not None and structlog.is_configured():
        return structlog.get_logger("refold", **bound)
    return _Plain(bound)
