"""The transcript in the README is what `make demo` prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import documents
from tests.support import ROOT

(TRANSCRIPT,) = documents.section("README.md", "Try it").blocks("text")
CHANGES = re.compile(r"[0-9a-f]{32}|\d{8}-[0-9a-f]{8}|[\d:]{8}|\d{4}-\d{2}-\d{2}|process \d+ on \S+")
"""What is another at each run: keys and sums, run ids, times, processes."""


def _plain(line: str) -> str:
    return CHANGES.sub("*", line).strip()


@pytest.mark.full
def test_every_line_of_the_transcript_is_printed_in_its_order(tmp_path: Path) -> None:
    """Lines may be left out (`...`), and a long line may be cut at its end by `...`."""
    here, ready = tmp_path / "demo", tmp_path / "ready"  # the set-up is done: these tests run in it
    words = [f"DEMO={here}", f"READY={ready}", f"--old-file={ready}", f"VENV={sys.prefix}"]
    done = subprocess.run(
        ["make", "--silent", "demo", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    printed = iter([_plain(line.replace(str(here), ".demo")) for line in done.stdout.splitlines()])
    for line in TRANSCRIPT.splitlines():
        wanted = _plain(line.removesuffix("..."))
        assert not wanted or any(wanted in seen for seen in printed), line
