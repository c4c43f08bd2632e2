"""What tests of several folders share: stories, walks, disks, the command, and the root of the repository."""

from __future__ import annotations

import os
from pathlib import Path

_OF_FEW_POINTS = frozenset({"person", "model", "cancel", "park"})
ROOT = Path(__file__).resolve().parents[2]


def sampled(every: int, mode: str) -> int:
    """Tell how far apart the points are that a long sweep tries in a mode: every so many-th, or as `SWEEP_EVERY` says.

    A mode that has few of a run's points gets ten times as many of them. The whole, `SWEEP_EVERY=1 make test-full`,
    takes an hour.
    """
    every = int(os.environ.get("SWEEP_EVERY", every))
    return max(1, every // 10) if mode in _OF_FEW_POINTS else every
