"""The effect that each runner is killed around: a line in a file, synced, which no repeat can take back.

A life dies by SIGKILL in its first call of the tool, either before the line is written or after it, and no later life
dies. Whether it has died stands in a file, because nothing in a process survives SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

PLACE = Path(sys.argv[1])
WHEN = sys.argv[2]
EFFECTS = PLACE / "effects"


def act(mark: str = "sent") -> str:
    """Append a line, and die before or after it if nobody has died yet."""
    if WHEN == "before":
        _die_once()
    with EFFECTS.open("a") as file:
        file.write(f"{mark}\n")
        file.flush()
        os.fsync(file.fileno())
    if WHEN == "after":
        _die_once()
    return "sent"


def happened(mark: str) -> bool:
    """Whether the file has this line."""
    return EFFECTS.exists() and mark in EFFECTS.read_text().split()


def _die_once() -> None:
    died = PLACE / "died"
    if not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
