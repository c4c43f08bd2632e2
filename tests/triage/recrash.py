"""Makes the tasks' crashes.json afresh by really crashing their applications; run as `python tests/triage/recrash.py`.

A traceback that someone typed would name lines that do not exist. These come from the buggy application itself, run
with what the users typed; only the places of the workspace and of the interpreter's library are cut from the paths, as
a crash reporter does.
"""

import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from runner import triage
from tests.support import ROOT

DATA = ROOT / "runner" / "triage" / "world"


class Report(NamedTuple):
    """What users did, and how many of them met the crash; dates are the first and the last report's.

    `room`: bytes that a file may have where it happened, if that is what it took.
    """

    id: str
    reports: int
    first: str
    last: str
    typed: tuple[str, ...]
    room: int | None = None


_DELETED = ("add milk", "add bread", "add tea", "delete 1")
REPORTS = {
    "m1-done-after-delete": (
        Report("T-102", 12, "2026-10-02", "2026-11-25", ("add call home", "add taxes --due 2026-12-31", "next")),
        Report("T-101", 47, "2026-09-18", "2026-11-27", (*_DELETED, "list", "done 3")),
        Report("T-103", 7, "2026-10-11", "2026-11-20", ("add milk --due tomorrow",)),
        Report("T-104", 3, "2026-11-03", "2026-11-19", ("add milk", "rename")),
    ),
    "batch": (
        Report("B-101", 61, "2026-09-18", "2026-11-27", (*_DELETED, "done 3")),
        Report("B-102", 34, "2026-09-30", "2026-11-28", ("add call home", "add taxes --due 2026-12-31", "next")),
        Report("B-103", 23, "2026-10-31", "2026-11-26", ("add pay rent --due 2026-01-31 --every month", "done 1")),
        Report("B-104", 19, "2026-10-11", "2026-11-20", ("add milk --due tomorrow",)),
        Report("B-105", 14, "2026-10-04", "2026-11-24", (*_DELETED, "rename 3 green tea")),
        Report("B-106", 11, "2026-11-02", "2026-11-22", ("stats",)),
        Report("B-107", 8, "2026-11-03", "2026-11-19", ("add milk", "rename")),
        Report("B-108", 2, "2026-11-08", "2026-11-09", ("add milk", "add bread"), room=64),
    ),
}
VERSIONS = {"m1-done-after-delete": "1.4.0", "batch": "1.6.0"}


def crash(task: str, report: Report) -> dict[str, Any]:
    """The crash group of one report, from a run of the task's application that really crashes."""

    def cramped() -> None:
        if report.room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (report.room, report.room))

    with tempfile.TemporaryDirectory() as scratch:
        workspace = Path(scratch).resolve() / "workspace"
        triage.Task(task).unpack(workspace)
        run = subprocess.run(
            [sys.executable, "-m", "todo", str(Path(scratch, "list.json"))],
            input="".join(f"{line}\n" for line in report.typed),
            cwd=workspace,
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "1",
                "COVERAGE_PROCESS_CONFIG": "",
                "COVERAGE_PROCESS_START": "",
            },
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=cramped,
        )
    traceback = run.stderr.replace(f"{workspace}/", "").replace(f"{sysconfig.get_path('stdlib')}/", "python/")
    return {
        "id": report.id,
        "error": traceback.strip().rpartition("\n")[2],
        "reports": report.reports,
        "version": VERSIONS[task],
        "first": report.first,
        "last": report.last,
        "input": list(report.typed),
        "traceback": traceback,
    }


def main() -> None:
    """Write the files."""
    for task, reports in REPORTS.items():
        crashes = msgspec.json.encode([crash(task, report) for report in reports])
        (DATA / task / "crashes.json").write_bytes(msgspec.json.format(crashes, indent=1) + b"\n")


if __name__ == "__main__":
    main()
