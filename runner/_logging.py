"""Log lines for the edges, with what looks like a secret masked: they go wherever the program sends them.

The library configures nothing: a program that configured structlog gets our lines there, any other gets them through
the standard logger named `refold`, which prints nothing unless the program says so. A line that can't be written
there, as on a full disk or a closed pipe, is lost, and nothing else with it. structlog is not imported here,
because that takes longer than everything else together and pulls in what else is installed; a program that configured
it has imported it.
"""

import contextlib
import logging
import sys
from typing import Any

from runner._agent.redact import redact

_STANDARD = logging.getLogger("refold")
_STANDARD.addHandler(logging.NullHandler())  # without it, warnings land on a user's stderr


class _Logger:
    """Says a line through structlog where the program configured it, else through the standard logger."""

    def __init__(self, bound: dict[str, Any]) -> None:
        self._bound = bound

    def info(self, event: str, **said: Any) -> None:
        with contextlib.suppress(Exception):
            self._say(logging.INFO, event, said)

    def warning(self, event: str, **said: Any) -> None:
        with contextlib.suppress(Exception):
            self._say(logging.WARNING, event, said)

    def _say(self, level: int, event: str, said: dict[str, Any]) -> None:
        structlog = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            say = getattr(structlog.get_logger("refold"), logging.getLevelName(level).lower())
            say(event, **redact({**self._bound, **said}))
        elif _STANDARD.isEnabledFor(level):
            facts = "".join(f" {name}={value!r}" for name, value in redact({**self._bound, **said}).items())
            _STANDARD.log(level, "%s%s", event, facts)


def logger(**bound: Any) -> _Logger:
    """A logger with these values bound."""
    return _Logger(bound)
