"""Figures: what a long test counted, printed at the end of the run. `make test-full` loads this as a plugin.

A count that passes its limit is still worth seeing: a sweep that shrank by half is no longer the same proof.
"""

from __future__ import annotations

from typing import Final

import pytest

FIGURES: Final = "figures"
"""The name under which a test records its sentence with `record_property`."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print every sentence that a test recorded."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, value in report.user_properties:
                    if name == FIGURES:
                        terminalreporter.write_line(f"{report.nodeid}: {value}")
