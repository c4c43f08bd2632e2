"""The report of a sweep: rows to print, scenarios to look at, failures that can be repeated."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from runner.testing._verdict import Scenario

_SHOWN: Final = 10
_IDS: Final = 3


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenarios of one mode add up to.

    Attributes:
        mode: The mode.
        without: What was taken away: `keys`, `lookups`, or both joined by `+`.
        scenarios: How many scenarios there were.
        duplicates: Effects that happened more often than in the undisturbed run.
        lost: Effects that did not happen.
        paid_twice: Replies that the model gave twice.
        questions: Questions that a person was asked because a call was in doubt.
        unfinished: Scenarios whose run did not finish.
        failures: Scenarios in which something is wrong.
    """

    mode: str
    without: str = ""
    scenarios: int = 0
    duplicates: int = 0
    lost: int = 0
    paid_twice: int = 0
    questions: int = 0
    unfinished: int = 0
    failures: int = 0


_HEAD: Final = (
    "mode", "without", "scenarios", "duplicates", "lost", "asked twice", "questions", "unfinished", "failures"
)  # fmt: skip


def table(rows: Iterable[Row]) -> str:
    """Rows as a table, with their sum if there are several."""
    rows = list(rows)
    if len(rows) > 1:
        counts = {name: sum(getattr(row, name) for row in rows) for name in Row.__struct_fields__[2:]}
        rows.append(Row(mode="all", **counts))
    lines = [_HEAD, *([f"{value}" for value in msgspec.structs.astuple(row)] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEAD))]
    placed = (
        [cell.rjust(width) if cell.isdecimal() else cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in placed)


def count_scenarios(mode: str, without: str, scenarios: Iterable[Scenario]) -> Row:
    each = [one for one in scenarios if one.mode == mode]
    sums = {
        name: sum(getattr(one, name) for one in each) for name in ("duplicates", "lost", "paid_twice", "unfinished")
    }
    questions, failures = sum(len(one.questions) for one in each), sum(bool(one.why) for one in each)
    return Row(mode=mode, without=without, scenarios=len(each), questions=questions, failures=failures, **sums)


@dataclass(frozen=True)
class SweepReport:
    """The result of a sweep; `str` gives the table and the failures below it.

    Attributes:
        points: The names of the points of the undisturbed run.
        rows: One row for each mode.
        scenarios: All scenarios.
    """

    points: tuple[str, ...]
    rows: tuple[Row, ...]
    scenarios: tuple[Scenario, ...]

    @classmethod
    def of(cls, reports: Iterable[Self]) -> Self:
        """Put several sweeps of the same points into one report."""
        each = list(reports)
        rows = tuple(row for report in each for row in report.rows)
        return cls(each[0].points, rows, tuple(one for report in each for one in report.scenarios))

    @property
    def failures(self) -> tuple[Scenario, ...]:
        """The scenarios in which something is wrong."""
        return tuple(one for one in self.scenarios if one.why)

    def __str__(self) -> str:
        wrong = any(one.wrong_answers for one in self.scenarios)
        said = ["What a person's wrong answer doubled or lost is counted, and is no failure."] if wrong else []
        return "\n".join([table(self.rows), *said, *describe(self.failures)])


def describe(failures: Sequence[Scenario]) -> list[str]:
    """Failures in words: each cause once, those of a single death first, with the scenarios that show it."""
    causes: dict[str, list[Scenario]] = {}
    for one in sorted(failures, key=lambda one: bool(one.second)):
        causes.setdefault(one.why[0], []).append(one)
    lines = []
    for cause, ones in list(causes.items())[:_SHOWN]:
        lines += [f"failed: {cause}", *(f"    {line}" for line in ones[0].why[1:])]
        lines += [f"    {one.id}: {one.first}{f', then {one.second}' if one.second else ''}" for one in ones[:_IDS]]
        if len(ones) > _IDS:
            lines.append(f"    and {len(ones) - _IDS} more scenarios")
    if len(causes) > _SHOWN:
        lines.append(f"and {len(causes) - _SHOWN} more causes")
    return lines
