"""What an agent's answer must be: a type, and a function that may refuse a value of it.

A model that can be held to a schema is given one with each turn. Any other is given a tool, `final_output`, whose
arguments are the answer. A final text that says a value of the type is an answer either way, and what comes is judged
here, whatever a vendor promised. JSON schemas of vendors describe objects: any other value is in the field `output` of
one, which an answer may leave out.
"""

from collections.abc import Callable, Mapping
from typing import Any

from runner._agent import json_text
from runner._agent.json_text import InvalidArguments
from runner._agent.model import Model, ToolSpec
from runner._agent.typed import DoesNotFit, Typed

FINAL = "final_output"
"""The tool that takes the answer."""
_DESCRIPTION = "Give your final answer, which ends your work. Call it alone, when everything else is done."


class Output:
    """The output of one agent.

    Attributes:
        native: The schema as its model takes it, or None.
        tool: The tool that takes the answer of a model without one.
    """

    def __init__(self, hint: Any, validate: Callable[[Any], str | None] | None, model: Model) -> None:
        """Raises `Unsupported` for a type whose values have no JSON form."""
        self._typed, self._validate = Typed(hint), validate
        self.name = self._typed.name
        self.schema, self._wrapped = _object(self._typed.schema)
        expressed = getattr(model, "output_schema", None)
        self.native: Mapping[str, Any] | None = expressed(self.schema) if callable(expressed) else None
        self.tool = ToolSpec(FINAL, _DESCRIPTION, self.schema) if self.native is None else None

    def load(self, text: str) -> Any:
        """The value that an answer says. Raises `DoesNotFit`."""
        try:
            value = json_text.read(text)
        except InvalidArguments as error:
            raise DoesNotFit(str(error)) from None
        if self._wrapped and isinstance(value, dict) and value.keys() == {"output"}:
            try:
                return self._typed.read(value["output"], repair=True)
            except DoesNotFit:
                pass
        return self._typed.read(value, repair=True)

    def dump(self, value: Any) -> str:
        """The JSON that says a value. Raises `DoesNotFit` when reading it gives another value."""
        text = self._typed.dump(value)
        return f'{{"output": {text}}}' if self._wrapped else text

    def problem(self, text: str) -> str | None:
        """Why an answer is none, or None when it is one."""
        try:
            value = self.load(text)
            self.dump(value)
        except DoesNotFit as why:
            return str(why)
        try:
            return self._validate(value) if self._validate is not None else None
        except Exception as error:  # noqa: BLE001 (the user's code: what it raises is its reason)
            return f"{type(error).__name__}: {error}"


def _object(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema of an object, and whether the value is in its field `output`."""
    defs = schema.get("$defs", {})
    root: Mapping[str, Any] = {key: part for key, part in schema.items() if key != "$defs"}
    while set(root) == {"$ref"}:
        root = defs[root["$ref"].rsplit("/", 1)[1]]
    wrapped = root.get("type") != "object" or "properties" not in root
    if wrapped:
        root = {"type": "object", "properties": {"output": root}, "required": ["output"], "additionalProperties": False}
    return {**root, "$defs": defs} if defs else {**root}, wrapped
