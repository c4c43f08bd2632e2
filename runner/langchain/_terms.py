"""What is declared of tools, and which run an agent belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from runner._agent.call import CURRENT
from runner._agent.tools import Tool
from runner.adapters import Declarations, Durable, current


def declare(terms: Declarations, name: str, tool: BaseTool | None) -> Tool:
    """A tool of LangChain, if it is known, as refold's."""

    def about() -> tuple[str, Mapping[str, Any], Any]:
        spec = convert_to_openai_tool(tool)["function"] if tool is not None else {}
        return spec.get("description", ""), spec.get("parameters", {}), tool.metadata if tool is not None else None

    return terms.of(name, tool, about)


def here() -> Durable | None:
    """The run that this agent belongs to. One inside a tool belongs to the tool's attempt."""
    run, call = current(), CURRENT.get(None)
    if run is None or (call is not None and call.run == run.run):
        return None
    run.keep_open = True  # an interrupted agent returns like one that is done
    return run
