"""The instructions of a save and of reading a line, compared with those that are stored.

A ratio may grow by a twentieth; beyond that somebody must find out why, or store the new one with
`python -m tests.guard` and say so. Each version of Python has figures of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard import counting
from tests.support.figures import FIGURES

STORED = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))["instructions"]
MORE = 1.05


@pytest.mark.full
def test_a_save_and_a_read_line_take_no_more_instructions_than_before(
    record_property: Callable[[str, object], None],
) -> None:
    """Wall time depends on the machine's mood; this does not, so a slower path is seen when it is written."""
    if not counting.has_valgrind():
        why = "valgrind is missing (apt-get install valgrind)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    stored = STORED.get(counting.VERSION)
    if stored is None:
        pytest.skip(f"no figures are stored for {counting.VERSION}; `python -m tests.guard` stores them")
    found = counting.ratios()
    record_property(
        FIGURES, ", ".join(f"{work} {ratio:.4f}, stored {stored[work]:.4f}" for work, ratio in found.items())
    )
    for work, ratio in found.items():
        assert ratio <= stored[work] * MORE, work
