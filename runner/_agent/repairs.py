"""Values that models get almost right, put right where JSON leaves no doubt about what was meant.

Where a value does not fit: text that is JSON is unquoted (`"5"`, `"[1]"`), a whole float becomes an int, and a null is
left out where there is a default. Nothing else: `"nan"` stays text, 1 is not true, 0 is no date.
"""

from typing import Any

from runner._agent import json_text
from runner._agent.adapters import Adapter, Invalid
from runner._agent.places import NOTHING, Path, at, put

MOST = 50
EXACT = 2**53
_BEGINS = tuple("-0123456789tfn[{")


def repaired(adapter: Adapter, value: Any) -> Any:
    """The value as its type. Raises the first `Invalid` when repairs do not help."""
    first: Invalid | None = None
    now = value
    for _ in range(MOST):
        try:
            return adapter.load(now)
        except Invalid as invalid:
            first = first or invalid
            tried = (_better(now, problem.path) for problem in invalid.problems)
            better = next((one for one in tried if one is not NOTHING), NOTHING)
            if better is NOTHING:
                break
            now = better
    assert first is not None
    raise first


def _better(whole: Any, path: Path) -> Any:
    there = at(whole, path)
    if isinstance(there, str) and there.strip().startswith(_BEGINS):
        try:
            return put(whole, path, json_text.read(there))
        except json_text.InvalidArguments:
            return NOTHING
    if isinstance(there, float) and there.is_integer() and abs(there) < EXACT:
        return put(whole, path, int(there))
    if there is None and path and isinstance(path[-1], str):
        return put(whole, path, NOTHING)
    return NOTHING
