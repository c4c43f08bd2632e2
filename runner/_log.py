"""Log lines for the edges.

The library configures nothing: a program that configured structlog gets our lines there, any other gets them through
the standard logger named `refold`.
"""

from __future__ import annotations

import logging
from typing import Any

import structlog

logging.getLogger("refold").addHandler(logging.NullHandler())  # without it, warnings land on a user's stderr
_STANDARD = structlog.wrap_logger(
    logging.getLogger("refold"),
    processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def logger(**bound: object) -> Any:
    """A structlog logger with these values bound."""
    return structlog.get_logger("refold", **bound) if structlog.is_configured() else _STANDARD.bind(**bound)
