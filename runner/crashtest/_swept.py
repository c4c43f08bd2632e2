"""What a sweep came to: rows to print, scenarios to look at, failures that can be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from runner.crashtest._judged import Scenario

_SHOWN: Final = 10


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The scenarios of one mode, counted. `without` names what was taken away; `questions` are those of the ladder.

    `duplicates` and `lost` are effects, `paid_twice` replies, `unfinished` and `failures` scenarios.
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
    "mode", "without", "scenarios", "duplicates", "lost", "paid twice", "questions", "unfinished", "failures"
)  # fmt: skip


def table(rows: Iterable[Row]) -> str:
    """Rows below each other as text, with their sum if there are several."""
    rows = list(rows)
    if len(rows) > 1:
        counts = {name: sum(getattr(row, name) for row in rows) for name in Row.__struct_fields__[2:]}
        rows.append(Row(mode="all", **counts))
    lines = [_HEAD, *([f"{value}" for value in msgspec.structs.astuple(row)] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEAD))]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    placed = [
        cell.rjust(width) if cell.isdecimal() else cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
    ]
    return "  ".join(placed).rstrip()


def counted(mode: str, without: str, scenarios: Iterable[Scenario]) -> Row:
    """The row of one mode's scenarios."""
    each = [one for one in scenarios if one.mode == mode]
    return Row(
        mode=mode,
        without=without,
        scenarios=len(each),
        duplicates=sum(one.duplicates for one in each),
        lost=sum(one.lost for one in each),
        paid_twice=sum(one.paid_twice for one in each),
        questions=sum(len(one.questions) for one in each),
        unfinished=sum(one.unfinished for one in each),
        failures=sum(bool(one.why) for one in each),
    )


@dataclass(frozen=True)
class Swept:
    """A sweep's result; as text it is the table, with the failures below it.

    `points` are the names of the points of an undisturbed run, `rows` one for each mode, `scenarios` all there were.
    """

    points: tuple[str, ...]
    rows: tuple[Row, ...]
    scenarios: tuple[Scenario, ...]

    @property
    def failures(self) -> tuple[Scenario, ...]:
        """The scenarios that something is wrong with."""
        return tuple(one for one in self.scenarios if one.why)

    def table(self) -> str:
        """The rows as text."""
        return table(self.rows)

    def json(self) -> str:
        """All of it as JSON."""
        everything = {"points": self.points, "rows": self.rows, "scenarios": self.scenarios}
        return msgspec.json.encode(everything).decode()

    def __str__(self) -> str:
        return "\n".join([self.table(), *said(self.failures)])


def said(failures: Sequence[Scenario]) -> list[str]:
    """Failures in words, the first so many of them."""
    lines = []
    for one in failures[:_SHOWN]:
        lines.append(f"failed: {one.id}: {one.first}{f', then {one.second}' if one.second else ''}")
        lines += [f"    {why}" for why in one.why]
    if len(failures) > _SHOWN:
        lines.append(f"and {len(failures) - _SHOWN} more")
    return lines
