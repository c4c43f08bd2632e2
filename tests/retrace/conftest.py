"""The command, run as in its own tests, and a history of the triage batch."""

from __future__ import annotations

import pytest

from tests.cli.conftest import process, refold, runs
from tests.retrace.histories import History, batch

__all__ = ["process", "refold", "runs"]


@pytest.fixture(scope="session")
def whole_batch() -> History:
    """The batch as it once ran, and today's agent for it."""
    return batch()
