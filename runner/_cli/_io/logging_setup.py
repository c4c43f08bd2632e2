"""Log lines of the libraries: none unless `--verbose` or $REFOLD_LOG names a level.

The library configures neither structlog nor logging; this command does, once, to stderr, with nothing a terminal obeys.
"""

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any

from runner._cli._io.errors import Refused, Status
from runner._cli._render.escape import one_line

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(*, verbose: bool) -> None:
    """Set the level: debug if `verbose`, else what $REFOLD_LOG says, else nothing is said.

    structlog is imported only when it is needed: that takes longer than most commands do. Raises `Refused` when
    $REFOLD_LOG is another word.
    """
    name = "debug" if verbose else os.environ.get("REFOLD_LOG", "").strip().lower()
    if not name:
        return
    if name not in LEVELS:
        raise Refused(f"REFOLD_LOG={name!r} is not a level", f"The levels are: {', '.join(LEVELS)}.", Status.USAGE)
    _configure("%H:%M:%S", _sentence, LEVELS[name], "stderr")


def as_json_lines() -> None:
    """Print what the library says of its work on stdout, a line of JSON each, whatever level was set before."""
    import structlog

    _configure("iso", structlog.processors.JSONRenderer(default=str), logging.INFO, "stdout")


def _configure(times: str, renderer: Any, level: int, stream: str) -> None:
    import structlog

    stamp = structlog.processors.TimeStamper(fmt=times, utc=True)
    structlog.configure(
        processors=[structlog.stdlib.add_log_level, stamp, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: structlog.PrintLogger(getattr(sys, stream)),  # views replace it from time to time
        cache_logger_on_first_use=False,
    )


def _sentence(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    """`14:03:59 info model failed error=...`, on one line."""
    head = " ".join(str(event.pop(name)) for name in ("timestamp", "level", "event") if name in event)
    return one_line(" ".join([head, *(f"{name}={value}" for name, value in event.items())]))
