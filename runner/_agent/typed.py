"""A type that a user declares for a whole run: its values as JSON text, and back.

The text is what the log holds. A value is read anew wherever it is used, so nothing that changes one changes another.
"""

import json
from typing import Any

from runner._agent import adapters, json_text
from runner._agent.adapters import Invalid
from runner._agent.json_text import InvalidArguments
from runner._agent.places import place
from runner._agent.repairs import repaired


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
            raise DoesNotFit(listed(invalid)) from None

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


def listed(invalid: Invalid) -> str:
    """Every problem with its place, on one line."""
    return "; ".join(f"{place(path)}: {text}" if path else text for path, text in invalid.problems)
