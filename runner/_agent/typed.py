"""A type that a user declares: its values as JSON text and back, and values that a model got almost right.

The text is what the log holds. A value is read anew wherever it is used, so nothing that changes one changes another.

Values are put right where JSON leaves no doubt about what was meant. Where one does not fit: text that is JSON is
unquoted (`"5"`, `"[1]"`), a whole float becomes an int, and a null is left out where there is a default. Nothing else:
`"nan"` stays text, 1 is not true, 0 is no date.
"""

import json
from typing import Any

from runner._agent import adapters, json_text
from runner._agent.adapters import Adapter, Invalid
from runner._agent.json_text import InvalidArguments
from runner._agent.json_values import NOTHING, Path, at, place, put

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


class DoesNotFit(Exception):
    """A value, or a text, that is none of the type; the text says why."""


class Typed:
    """One such type."""

    def __init__(self, hint: Any) -> None:
        """Raises `Unsupported` for a type whose values have no JSON form."""
        self.adapter = adapters.adapter(hint)
        self.schema = adapters.whole(self.adapter)
        self.name = str(getattr(hint, "__name__", hint))

    def load(self, text: str) -> Any:
        """The value that a text says. Raises `DoesNotFit`."""
        try:
            return self.read(json_text.read(text))
        except InvalidArguments as error:
            raise DoesNotFit(str(error)) from None

    def read(self, value: Any, *, repair: bool = False) -> Any:
        """The value that parsed JSON says; `repair` what a model got almost right. Raises `DoesNotFit`."""
        try:
            return repaired(self.adapter, value) if repair else self.adapter.load(value)
        except Invalid as invalid:
            said = [f"{place(one.path)}: {one.text}" if one.path else one.text for one in invalid.problems]
            raise DoesNotFit("; ".join(said)) from None

    def dump(self, value: Any) -> str:
        """The text that says a value. Raises `DoesNotFit` when reading it gives another value."""
        try:
            text = json.dumps(self.adapter.dump(value), ensure_ascii=False, allow_nan=False)
            text.encode()
            again = json.dumps(self.adapter.dump(self.load(text)), ensure_ascii=False)
        except DoesNotFit:
            raise
        except Exception as error:  # a serializer is the user's code
            raise DoesNotFit(f"{type(error).__name__}: {error}") from error
        if again != text:
            raise DoesNotFit("it becomes another value when it is written down and read")
        return text
