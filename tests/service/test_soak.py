"""A worker that lives through many runs gives back what it took for them; `python -m benchmarks.soak` takes an hour."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import soak
from tests.support.figures import FIGURES

CYCLES, RUNS = 6, 24


@pytest.mark.full
@pytest.mark.fault("death of a worker")
def test_a_worker_keeps_no_descriptor_task_or_object_of_runs_that_are_over(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Each cycle has deaths, parks, compactions and followers, and is judged: runs finish, effects happen once.

    What happens to be under way when it is counted does not matter: the most of the first cycles is held against the
    least of the last ones.
    """
    cycles = asyncio.run(soak.soaked(tmp_path, RUNS, lambda done: len(done) < CYCLES))
    early, late = cycles[: CYCLES // 2], cycles[CYCLES // 2 :]
    kept: Counter[str] = early[0].objects | early[1].objects | early[2].objects
    assert (late[0].objects & late[1].objects & late[2].objects) - kept == Counter()
    assert min(one.files for one in late) <= max(one.files for one in early)
    assert min(one.tasks for one in late) <= max(one.tasks for one in early)
    last = cycles[-1]
    record_property(FIGURES, f"{CYCLES * RUNS} runs leave {last.files} descriptors, {last.objects.total()} objects")
