"""What tests of several folders share: stories, walks, disks, the command, and the root of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

long_sweep = pytest.mark.skipif("SWEEP_EVERY" not in os.environ, reason="takes an hour: SWEEP_EVERY=1 make test-full")
"""Marks a sweep of many modes with second deaths; a part of it runs in the short tests."""


def sampled(every: int) -> int:
    """Tell how far apart the points are that a long sweep tries, here or by `SWEEP_EVERY` (1: it tries all)."""
    return int(os.environ.get("SWEEP_EVERY", every))
