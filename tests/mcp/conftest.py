"""Places for the tests of MCP, and the servers they talk to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.places import Shop
from tests.support.forkserver import ForkServer


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs that does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def shop(forks: ForkServer, tmp_path: Path) -> Iterator[Shop]:
    """A shop with nothing sold yet; its process starts when somebody connects."""
    with Shop(forks, tmp_path / "shop.sqlite") as found:
        yield found


@pytest.fixture(params=["stdio", "http"])
def where(request: pytest.FixtureRequest, shop: Shop) -> Any:
    """Both ways to a shop."""
    return shop.over_stdio() if request.param == "stdio" else shop.over_http()
