"""The shop that the example of an MCP server starts."""

from __future__ import annotations

from tests.mcp.conftest import shop

__all__ = ["shop"]
