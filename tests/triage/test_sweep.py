"""The triage job's sweep: its table is kept, and nothing in it may go wrong.

When the points or the counts change on purpose, `python -m tests.triage.test_sweep` writes the table afresh.
"""

import json
from typing import Any

import msgspec
import pytest

from runner import testing, triage
from tests.support import ROOT
from tests.testing.windows import window

KEPT = ROOT / "tests" / "golden" / "sweep.json"
DEPTHS: dict[str, dict[str, Any]] = {"quick": {"every": 28, "pairs": 0}, "full": {"every": 5, "pairs": 1}}
LESS: dict[str, Any] = {"modes": ["memory"], "without": ("keys", "lookups")}
ROWS: dict[str, dict[str, Any]] = {**{mode: {"modes": [mode]} for mode in testing.MODES}, "less": LESS}


def swept(depth: str, **options: Any) -> testing.SweepReport:
    """A sweep that finds nothing wrong."""
    report = triage.sweep(**DEPTHS[depth], **options)
    assert not report.failures, str(report)
    return report


def found(depth: str) -> dict[str, Any]:
    """The points, and the rows of a sweep with everything in place and of one without keys or lookups."""
    whole = swept(depth)
    return {"points": list(whole.points), "rows": msgspec.to_builtins([*whole.rows, *swept(depth, **LESS).rows])}


def judge(rows: list[dict[str, Any]]) -> None:
    """Nothing may go wrong, but for what mode `person` takes away."""
    for row in rows:
        assert (row["unfinished"], row["failures"]) == (0, 0)
        if row["mode"] != "person":
            assert (row["duplicates"], row["lost"]) == (0, 0)
        if row["mode"] != "person" and not row["without"]:
            assert row["questions"] == 0


def test_the_sweep_comes_to_the_table_that_is_kept() -> None:
    """Every mode; what a crash costs is counted exactly, and the same next year."""
    kept, now = json.loads(KEPT.read_text()), found("quick")
    assert now["points"] == kept["points"]
    assert now["rows"] == kept["rows"]["quick"]
    judge(now["rows"])


@pytest.mark.full
@pytest.mark.early
@pytest.mark.parametrize("options", ROWS.values(), ids=ROWS)
def test_a_deeper_sweep_comes_to_the_table_that_is_kept(options: dict[str, Any]) -> None:
    """Each row is a test of its own, so that several processes share them; together they are the whole table."""
    kept, now = json.loads(KEPT.read_text()), swept("full", **options)
    taken = "+".join(sorted(options.get("without", ())))
    rows = [row for row in kept["rows"]["full"] if (row["mode"], row["without"]) == (options["modes"][0], taken)]
    assert list(now.points) == kept["points"]
    assert msgspec.to_builtins([*now.rows]) == rows
    assert len(kept["rows"]["full"]) == len(ROWS)
    judge(rows)


def test_the_points_are_where_the_job_reaches_the_outside() -> None:
    """Every tool that acts, every ask, every file of the log and of the workspace."""
    points = json.loads(KEPT.read_text())["points"]
    names = {point.split(" ", 1)[1] for point in points}
    for tool in ("test_write 3.0", "code_patch 4.0", "issue_file 6.0", "issue_comment 7.0"):
        assert {f"tool {tool}, before", f"tool {tool}, after"} <= names
    assert {f"model turn {turn}, after" for turn in range(1, 9)} <= names
    assert {"rename store.py, after", "rename test_done_after_delete.py, after", "write head, inside"} <= names
    assert len(points) > 190


@pytest.mark.full
def test_without_keys_and_lookups_a_person_is_asked_exactly_where_an_effect_was_open() -> None:
    """The set is computed from the order of the points; a patch, an issue and a comment are what can be open."""
    report = triage.sweep(**LESS, pairs=0)
    due = [window(report.points, call) for call in ("code_patch 4.0", "issue_file 6.0", "issue_comment 7.0")]
    asked = [int(one.first.split(" ")[0]) for one in report.scenarios if one.questions]
    assert asked == sorted(at for points in due for at in points)
    assert not report.failures, str(report)
    assert sum(one.duplicates + one.lost for one in report.scenarios) == 0


@pytest.mark.full
def test_without_keys_the_lookups_settle_everything() -> None:
    """Then no effect is open that no lookup could settle, so nobody is asked."""
    report = triage.sweep(without=["keys"], modes=["memory", "service"], every=4, pairs=1)
    assert not report.failures, str(report)
    assert {(row.duplicates, row.lost, row.questions) for row in report.rows} == {(0, 0, 0)}


def _main() -> None:
    tables = {depth: found(depth) for depth in DEPTHS}
    table = {"points": tables["quick"]["points"], "rows": {depth: one["rows"] for depth, one in tables.items()}}
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")


if __name__ == "__main__":
    _main()
