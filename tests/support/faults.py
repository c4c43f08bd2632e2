"""`python -m tests.support.faults`: each fault, and the tests that try it, from the tests' marks alone."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict

import pytest


class Table:
    """A pytest plugin that collects tests, runs none, and keeps which of them are marked with which fault."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the marks."""
        for item in session.items:
            for mark in item.iter_markers("fault"):
                self.tests[mark.args[0]].add(item.nodeid.partition("[")[0])

    def __str__(self) -> str:
        faults = sorted(self.tests, key=str.lower)
        return "\n".join("\n    ".join([fault, *sorted(self.tests[fault])]) for fault in faults)


def main(*paths: str) -> int:
    """Print the table of the tests below `paths`, or of all."""
    table = Table()
    options = ["--collect-only", "-qq", "-n0", "-m", "full or not full"]
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*options, *paths], plugins=[table])
    print(table)  # noqa: T201 (the table is what was asked for)
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
