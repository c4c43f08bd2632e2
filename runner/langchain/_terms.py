"""What is declared of tools, and which run an agent belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from runner._agent.call import CURRENT
from runner._agent.tools import Tool
from runner._durable import Durable, current, declared


class Terms:
    """What is declared of tools."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._said = said
        self._declared: dict[str, tuple[Any, Tool]] = {}

    def of(self, name: str, tool: BaseTool | None) -> Tool:
        """A tool of LangChain, if it is known, as refold's."""
        known = self._declared.get(name)
        if known is None or known[0] is not tool:
            spec = convert_to_openai_tool(tool)["function"] if tool is not None else {}
            terms = self._said.get(name, tool.metadata if tool is not None else None)
            known = tool, declared(name, spec.get("description", ""), spec.get("parameters", {}), terms)
            self._declared[name] = known
        return known[1]


def here() -> Durable | None:
    """The run that this agent belongs to. One inside a tool belongs to the tool's attempt."""
    run, call = current(), CURRENT.get(None)
    if run is None or (call is not None and call.run == run.run):
        return None
    run.keep_open = True  # an interrupted agent returns like one that is done
    return run
