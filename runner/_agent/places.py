"""Places in parsed JSON: names and indices from the outside in."""

import json
from typing import Any

Path = tuple[str | int, ...]

NOTHING: Any = object()
"""What is found at a place that does not exist."""


def at(whole: Any, path: Path) -> Any:
    """What is at a place, or `NOTHING`."""
    for step in path:
        if (isinstance(whole, dict) and step in whole) or _inside(whole, step):
            whole = whole[step]
        else:
            return NOTHING
    return whole


def _inside(whole: Any, step: object) -> bool:
    return isinstance(whole, list) and isinstance(step, int) and step < len(whole)


def put(whole: Any, path: Path, new: Any) -> Any:
    """A copy with `new` at a place; `NOTHING` removes what is there."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    inner = put(whole[step], rest, new)
    if isinstance(whole, list):
        return [inner if index == step else member for index, member in enumerate(whole)]
    changed = {key: inner if key == step else member for key, member in whole.items()}
    return {key: member for key, member in changed.items() if member is not NOTHING}


def place(path: Path) -> str:
    """The place as a model reads it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def shown(value: Any) -> str:
    """What was sent, for the model."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 (a message, not a limit)
