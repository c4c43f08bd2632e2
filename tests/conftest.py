"""What every test may rely on: the same examples each time, and nothing of the developer's environment.

A test that fails must fail again when it is run again, so hypothesis draws from a fixed seed; and it has no deadline,
because a save waits for a disk whose speed is not what a property is about.
"""

from __future__ import annotations

import hypothesis
import pytest

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's `REFOLD_RUNS`: a test that forgot `--runs` must not find real runs."""
    monkeypatch.delenv("REFOLD_RUNS", raising=False)
