"""Every kind of fault has a number, and tests that name it; `tests/README.md` says which."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"[Hh]azards? (\d+(?:(?:, | and | to )\d+)*)")
ROWS = range(1, 38)


def _named() -> dict[int, set[str]]:
    """The test files that name each hazard."""
    found: dict[int, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        for match in NAMED.finditer(path.read_text(encoding="utf-8")):
            numbers = [int(number) for number in re.findall(r"\d+", match[1])]
            span = range(numbers[0], numbers[-1] + 1) if " to " in match[1] else numbers
            for number in span:
                found[number].add(path.relative_to(TESTS).as_posix())
    return found


def test_the_table_of_hazards_names_the_tests_that_name_them() -> None:
    """A row without a test is a promise that nothing holds."""
    table = (TESTS / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)
    listed = {int(number): set(re.findall(r"`([^`]+)`", files)) for number, files in rows}
    assert list(listed) == list(ROWS)
    assert listed == {number: _named()[number] for number in ROWS}
