"""The same kill for refold and two other runners: how often a tool's effect happened by the time the run finished.

The tool appends a line to a file. Its process is killed by a real SIGKILL, once after the line is written and before
the tool returns, once before the line; then a new process carries the run on as each runner's manual says. One line is
right, two are a duplicate, none is a loss. `make kill-peers` installs what it needs (the group `peers`) beside `.venv`
and runs it; `--json FILE` keeps the table.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

LIVES = Path(__file__).with_name("killed")


class Arm(NamedTuple):
    """A runner, how it is set, and the program that is one life of it."""

    packages: tuple[str, ...]
    setting: str
    life: str
    words: tuple[str, ...] = ()


ARMS = (
    Arm(("langgraph", "langgraph-checkpoint-sqlite"), 'durability="sync", SqliteSaver', "langgraph_life.py"),
    Arm(("dbos",), "a step of a workflow, SQLite", "dbos_life.py"),
    Arm(("refold",), "non_idempotent, with a lookup", "refold_life.py", ("lookup",)),
    Arm(("refold",), "non_idempotent, without a lookup", "refold_life.py", ("non_idempotent",)),
    Arm(("refold",), "idempotent (declared so)", "refold_life.py", ("idempotent",)),
)


class Wrong(Exception):
    """A life did not end as it had to, so that its count would mean nothing."""


def life(arm: Arm, place: Path, when: str, status: int) -> list[str]:
    """One life of a runner's process, which must end with `status`; the lines that it said."""
    command = [sys.executable, str(LIVES / arm.life), str(place), when, *arm.words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 (our own files)
    if done.returncode != status:
        message = f"{arm.life} {when} ended with {done.returncode} instead of {status}:\n{done.stderr}"
        raise Wrong(message)
    return done.stdout.split()


def killed(arm: Arm, when: str) -> tuple[int, bool]:
    """How often the effect happened, and whether a person was asked."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        life(arm, place, when, -signal.SIGKILL)
        said = life(arm, place, when, 0)
        if not said or said[-1] != "sent":
            message = f"{arm.life} {when} finished with {said}"
            raise Wrong(message)
        return len((place / "effects").read_text().splitlines()), "asked" in said


def row(arm: Arm) -> dict[str, object]:
    """One line of the table."""
    after, asked_after = killed(arm, "after")
    before, asked_before = killed(arm, "before")
    return {
        "runner": " + ".join(f"{name} {importlib.metadata.version(name)}" for name in arm.packages),
        "setting": arm.setting,
        "killed_after_acting": after,
        "killed_before_acting": before,
        "a_person_was_asked": asked_after or asked_before,
    }


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--json", type=Path, metavar="FILE", help="keep the table as JSON")
    given = options.parse_args()
    rows = [row(arm) for arm in ARMS]
    print("| runner | set to | effects, killed after acting | killed before acting | a person was asked |")
    print("|---|---|---|---|---|")
    for each in rows:
        cells = ["yes" if cell is True else "no" if cell is False else str(cell) for cell in each.values()]
        print(f"| {' | '.join(cells)} |")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
