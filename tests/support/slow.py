"""Slow tests, which `make test-fast` leaves out. Which tests are slow is measured: `make slow` writes the list afresh.

Fast are the quickest tests which together take `SHARE` of the time of all: a share, because every test takes longer on
a slower or a busier machine. The cases of a test stay together, and count with the fixtures that they use. The list
names tests without their files, so a test that moves stays slow. A test that is not in the list is taken to be fast.

As a plugin (`-p tests.support.slow`) this module measures: each process sends the seconds of a case with its report,
and the process that gets all reports writes the list.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import pytest

SHARE: Final = 0.15
"""Of the seconds that all tests take."""

LIST: Final = Path(__file__).with_name("slow.txt")
_PROPERTY: Final = "seconds"
_REQUEST: Final = pytest.StashKey[pytest.FixtureRequest]()


class Case(NamedTuple):
    """The seconds that one case of a test took, and those of the fixtures that it uses, whoever made them."""

    call: float
    fixtures: float


_fixtures: dict[str, float] = defaultdict(float)
_tests: dict[str, list[Case]] = defaultdict(list)


def names() -> frozenset[str]:
    """The names of the slow tests."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def slow(tests: dict[str, list[Case]]) -> list[str]:
    """The names of all tests but the quickest, which together take the share of the time of all."""
    left = SHARE * sum(case.call for cases in tests.values() for case in cases)
    found = []
    for name, cases in sorted(tests.items(), key=lambda test: fmean(map(sum, test[1]))):
        left -= sum(map(sum, cases))
        if left < 0:
            found.append(name)
    return sorted(found)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Keep how long a fixture takes to make: every test that uses it may be the one that has to wait for it."""
    began = time.perf_counter()
    made = yield
    _fixtures[fixturedef.argname] = max(_fixtures[fixturedef.argname], time.perf_counter() - began)
    return made


@pytest.fixture(autouse=True)
def _request_kept(request: pytest.FixtureRequest) -> None:
    """Keep what knows the fixtures that a test asks for while it runs."""
    request.node.stash[_REQUEST] = request


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Send the seconds along with the report, for only this process knows them."""
    if call.when == "call":
        fixtures = sum(_fixtures[name] for name in item.stash[_REQUEST].fixturenames)
        item.user_properties.append((_PROPERTY, [call.duration, fixtures]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the seconds of each case by its test's name."""
    name = report.nodeid.partition("[")[0].rpartition("::")[2]
    if report.when == "call":
        _tests[name] += [Case(*value) for key, value in report.user_properties if key == _PROPERTY]  # type: ignore[misc]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list, in the process that got every report."""
    if not hasattr(session.config, "workerinput"):
        LIST.write_text("".join(f"{name}\n" for name in slow(_tests)), encoding="utf-8")
