"""Where a call is open, from the order of a run's points alone: no word of the runner's is asked."""

from collections.abc import Sequence

SAVED = "write seg-000001.jsonl, after"


def names(points: Sequence[str]) -> list[str]:
    """The points without their numbers."""
    return [point.split(" ", 1)[1] for point in points]


def window(points: Sequence[str], call: str) -> range:
    """The points at which a death leaves a call open: from its marker's write to its result's.

    `call` is the tool's name and the call's id. What was written is there after a death, synced or not.
    """
    found = names(points)
    began, ended = found.index(f"tool {call}, before"), found.index(f"tool {call}, after")
    marked = max(at for at, name in enumerate(found[:began]) if name == SAVED)
    return range(marked, found.index(SAVED, ended))
