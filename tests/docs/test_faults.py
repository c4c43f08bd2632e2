"""`make faults` prints which tests try which fault, from the marks alone."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.docs import documents
from tests.support import ROOT

MARK = re.compile(r'mark\.fault\(\s*"([^"]+)"')


def test_the_table_of_faults_names_the_tests_that_try_them() -> None:
    """A fault without a test would be a promise that nothing holds; the table is never kept by hand."""
    command = [sys.executable, "-m", "tests.support.faults", "tests/eventlog/test_torn.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    faults = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert "torn tail" in faults, done.stdout + done.stderr
    listed = done.stdout.partition("torn tail\n")[2].splitlines()[0].strip()
    assert listed.startswith("tests/eventlog/test_torn.py::test_")


def test_every_fault_that_the_architecture_names_is_tried() -> None:
    """Who is trusted for what is a promise; the marks are where it is kept."""
    marks = {fault for path in (ROOT / "tests").rglob("test_*.py") for fault in MARK.findall(path.read_text())}
    rows = re.findall(r"^\| .* \|$", documents.section("ARCHITECTURE.md", "Who is trusted").text, re.MULTILINE)[1:]
    named = [re.findall(r'"([^"]+)"', row.rpartition(" | ")[2]) for row in rows]
    assert len(rows) == 7
    assert all(named)
    assert {fault for each in named for fault in each} - marks == set()
