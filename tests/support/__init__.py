"""What tests of several folders share: stories, walks, disks, the command, and the root of the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sampled(every: int) -> int:
    """Tell how far apart the points are that a long sweep tries: every so many-th, or as `SWEEP_EVERY` says.

    The whole, `SWEEP_EVERY=1 make test-full`, takes an hour.
    """
    return int(os.environ.get("SWEEP_EVERY", every))
