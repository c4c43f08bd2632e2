"""How long does `refold ls` take over many runs: those whose statuses count, and those whose logs must be read?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import eventlog
import runner
from benchmarks import arms, models, table

TURNS = 3


class NoSync(eventlog.Disk):
    """Only makes the runs: what is measured reads."""

    def datasync(self, fd: int) -> None:
        """Do nothing."""

    def sync(self, fd: int) -> None:
        """Do nothing."""

    def sync_dir(self, path: Path) -> bool:  # noqa: ARG002 (as a disk's)
        """Do nothing."""
        return True


def make(place: Path, count: int) -> None:
    """Runs that are done."""

    @runner.tool(effect="reads")
    async def look(at: str) -> str:
        return at * 100

    disk = eventlog.Directory(place, disk=NoSync())
    for number in range(count):
        agent = models.agent(models.Model(TURNS, size=300), look)
        runner.start_sync(agent, "Look at it.", runs=disk, run=f"run-{number:05d}")


def listed(place: Path) -> tuple[float, float]:
    """Seconds that the command takes, its start included, and the processor's seconds in all its processes."""
    began, before = time.perf_counter(), os.times()
    command = [sys.executable, "-P", "-m", "runner._cli", "ls", "--json", "--runs", str(place)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 (ours)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, used


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    count = 1_000 if short else 10_000
    with arms.room() as where:
        resting, unclean, none = where / "statuses count", where / "logs are read", where / "no runs"
        make(resting, count)
        shutil.copytree(resting, unclean)
        for status in unclean.glob("*/status"):
            status.unlink()
        rounds: dict[Path, list[tuple[float, float]]] = {none: [], resting: [], unclean: []}
        for _ in range(3 if short else 7):
            for place, took in rounds.items():
                took.append(listed(place))
    rows = []
    for place, took in rounds.items():
        wall, used = zip(*took, strict=True)
        rows.append([place.name, *(f"{value:.2f}" for value in (arms.middle(wall), min(wall), arms.middle(used)))])
    head = [f"{count:,} runs", "p50 s", "least s", "p50 processor s"]
    table.report("listing", "How long does a list of runs take?", head, rows, short=short)


if __name__ == "__main__":
    main()
