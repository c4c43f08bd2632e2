"""Makes a task's crashes.json afresh by really crashing its application; run as `python tests/triage/recrash.py`.

A traceback that someone typed would name lines that do not exist. These come from the buggy application itself, run
with what the users typed; only the place of the workspace is cut from the paths, as a crash reporter does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

DATA = Path(__file__).parents[2] / "runner" / "triage" / "world" / "m1-done-after-delete"


class Report(NamedTuple):
    """What users did, and how many of them met the crash; dates are the first and the last report's."""

    id: str
    reports: int
    first: str
    last: str
    typed: tuple[str, ...]


REPORTS = (
    Report("T-102", 12, "2026-10-02", "2026-11-25", ("add call home", "add taxes --due 2026-12-31", "next")),
    Report("T-101", 47, "2026-09-18", "2026-11-27", ("add milk", "add bread", "add tea", "delete 1", "list", "done 3")),
    Report("T-103", 7, "2026-10-11", "2026-11-20", ("add milk --due tomorrow",)),
    Report("T-104", 3, "2026-11-03", "2026-11-19", ("add milk", "rename")),
)


def crash(report: Report) -> dict[str, Any]:
    """The crash group of one report, from a run of the application that really crashes."""
    with tempfile.TemporaryDirectory() as scratch:
        run = subprocess.run(
            [sys.executable, "-m", "todo", str(Path(scratch, "list.json"))],
            input="".join(f"{line}\n" for line in report.typed),
            cwd=DATA / "workspace",
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    traceback = run.stderr.replace(f"{DATA / 'workspace'}/", "")
    return {
        "id": report.id,
        "error": traceback.strip().rpartition("\n")[2],
        "reports": report.reports,
        "version": "1.4.0",
        "first": report.first,
        "last": report.last,
        "input": list(report.typed),
        "traceback": traceback,
    }


def main() -> None:
    """Write the file."""
    crashes = msgspec.json.encode([crash(report) for report in REPORTS])
    (DATA / "crashes.json").write_bytes(msgspec.json.format(crashes, indent=1) + b"\n")


if __name__ == "__main__":
    main()
