"""Whatever a model writes, arguments are taken or refused, and what was taken is taken again as it is."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.test_adapters import FIT, taker

NEAR = st.sampled_from(
    ["x", "note", "type", "radius", "side", "id", "lines", "name", "age", "cents", "items", "zip", "..."]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["5", "[1]", '{"x": "1"}', "null", "1e999", '"', "2026-01-02", "Circle", "Square", "[[[["])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NEAR, inner, max_size=4), max_leaves=8
)
HINTS = [hint for hint, _ in FIT] + [dict[str, list[dict[int, Any]]], dict[str, dict[str, int | None]]]


@pytest.mark.fault("arguments that no test thought of")
@pytest.mark.parametrize("hint", HINTS, ids=str)
@given(value=JSON)
@settings(max_examples=30, deadline=None)
def test_any_json_is_taken_or_refused_and_taken_again_as_it_was(hint: Any, value: Any) -> None:
    """An error here would end every life of the run; another value at a retry would be another call."""
    tool = taker(hint)
    found = tool.prepare(json.dumps({"value": value}))
    assert (found.problem is None) == (found.values is not None)
    if found.problem is None:
        again = tool.prepare(found.text)
        assert (again.problem, again.text, again.plain) == (None, found.text, found.plain)
