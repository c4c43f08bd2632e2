"""A pytest plugin: what became of each test, and what was counted, as JSON in the file that REFOLD_REPORT names.

REFOLD_SAMPLE=N leaves one test of N, the same ones each time.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from pathlib import Path
from typing import Any

from .counted import COUNTS

PASSED: set[str] = set()
FAILED: dict[str, str] = {}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Take the sample."""
    every = int(os.environ.get("REFOLD_SAMPLE", "1"))
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % every == 0]


def pytest_runtest_logreport(report: Any) -> None:
    """Note how a part of a test ended."""
    if report.failed:
        FAILED[report.nodeid] = str(report.longrepr)[-300:]
    elif report.passed and report.when == "call":
        PASSED.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write it all."""
    passed = sorted(PASSED - FAILED.keys())
    found = {"passed": passed, "failed": FAILED, **dataclasses.asdict(COUNTS)}
    Path(os.environ["REFOLD_REPORT"]).write_text(json.dumps(found), "utf-8")
