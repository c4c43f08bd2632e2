"""The pytest plugin: a fixture `crash_sweep`, and `--crash-only` to repeat one scenario of it.

It is shipped under a name of its own beside the packages (`_refold_pytest`), because pytest imports every installed
plugin before anything else: importing it as a part of `runner` would import all of `runner` into every test session on
the machine, before coverage is measured. So this file imports nothing of ours until a test asks for the fixture.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.testing import SweepReport


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--crash-only`."""
    group = parser.getgroup("refold")
    group.addoption(
        "--crash-only", metavar="ID", default="", help="Let `crash_sweep` play this one scenario, named by a failure."
    )


@pytest.fixture
def crash_sweep(request: pytest.FixtureRequest) -> Callable[..., SweepReport]:
    """`runner.testing.sweep`, failing the test with its table if any scenario went wrong.

    Call it with the arguments of `sweep`; it returns what `sweep` returns, for more to be asserted.
    """
    try:
        from runner import testing  # noqa: PLC0415 (late: see above)
    except ImportError:
        runner = sys.modules.get("runner")
        if runner is None or hasattr(runner, "resume"):
            raise
        pytest.fail(
            f"the package runner that Python imports is {runner.__file__}, not refold's: rename it", pytrace=False
        )

    only: str = request.config.getoption("--crash-only")

    def sweep(**options: Any) -> SweepReport:
        swept = testing.sweep(**(options | {"only": only} if only else options))
        if swept.failures:
            again = f"pytest {request.node.nodeid} --crash-only {swept.failures[0].id}"
            pytest.fail(f"{swept}\nrepeat one of them with: {again}", pytrace=False)
        return swept

    return sweep
