"""The command in a process of its own, and a history of the triage batch."""

import pytest

from tests.cli.conftest import process
from tests.review.retrace.histories import History, batch

__all__ = ["process"]


@pytest.fixture(scope="session")
def whole_batch() -> History:
    """The batch as it once ran, and the current agent for it."""
    return batch()
