"""The triage job's sweep: its table is kept, and nothing in it may go wrong.

When the points or the counts change on purpose, `python -m tests.triage.test_sweep` writes the table afresh.
"""

import json
from typing import Any

import msgspec
import pytest

from runner import triage
from tests.support import ROOT
from tests.testing.windows import window

KEPT = ROOT / "tests" / "golden" / "sweep.json"
DEPTHS: dict[str, dict[str, Any]] = {"quick": {"every": 28, "pairs": 0}, "full": {"every": 5, "pairs": 1}}


def found(depth: str) -> dict[str, Any]:
    """The points, and the rows of a sweep with everything in place and of one without keys or lookups."""
    options = DEPTHS[depth]
    whole, less = triage.sweep(**options), triage.sweep(without=("keys", "lookups"), modes=["memory"], **options)
    for swept in (whole, less):
        assert not swept.failures, str(swept)
    return {"points": list(whole.points), "rows": msgspec.to_builtins([*whole.rows, *less.rows])}


@pytest.mark.parametrize("depth", ["quick", pytest.param("full", marks=pytest.mark.full)])
def test_the_sweep_comes_to_the_table_that_is_kept(depth: str) -> None:
    """Every mode; what a crash costs is counted exactly, and the same next year."""
    kept, swept = json.loads(KEPT.read_text()), found(depth)
    assert swept["points"] == kept["points"]
    assert swept["rows"] == kept["rows"][depth]
    for row in swept["rows"]:
        assert (row["unfinished"], row["failures"]) == (0, 0)
        if row["mode"] != "person":
            assert (row["duplicates"], row["lost"]) == (0, 0)
        if row["mode"] != "person" and not row["without"]:
            assert row["questions"] == 0


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
    swept = triage.sweep(without=("keys", "lookups"), modes=["memory"], pairs=0)
    alone = [one for one in swept.scenarios if "*" not in one.id]
    due = [window(swept.points, call) for call in ("code_patch 4.0", "issue_file 6.0", "issue_comment 7.0")]
    asked = [int(one.first.split(" ")[0]) for one in alone if one.questions]
    assert asked == sorted(at for points in due for at in points)
    assert not swept.failures, str(swept)
    assert sum(one.duplicates + one.lost for one in alone) == 0


@pytest.mark.full
def test_without_keys_the_lookups_settle_everything() -> None:
    """Then no effect is open that no lookup could settle, so nobody is asked."""
    swept = triage.sweep(without=["keys"], modes=["memory", "service"], every=4, pairs=1)
    assert not swept.failures, str(swept)
    assert {(row.duplicates, row.lost, row.questions) for row in swept.rows} == {(0, 0, 0)}


def _main() -> None:
    swept = {depth: found(depth) for depth in DEPTHS}
    table = {"points": swept["quick"]["points"], "rows": {depth: one["rows"] for depth, one in swept.items()}}
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")


if __name__ == "__main__":
    _main()
