"""The environment of a child that must not be measured.

Coverage writes a database of its own, takes SIGTERM, and would meet the very faults that a test injects.
"""

from __future__ import annotations

import os

SILENT = {"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""}


def environment(**more: str) -> dict[str, str]:
    """The environment of this process without measuring, and `more`."""
    return {**os.environ, **SILENT, **more}
