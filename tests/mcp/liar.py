"""An MCP server written by hand, without the SDK: it lists its tools on two pages and answers a call with nonsense."""

from __future__ import annotations

import json
import sys
from typing import Any

OBJECT = {"type": "object"}
PAGES: dict[str | None, dict[str, Any]] = {
    None: {"tools": [{"name": "first", "inputSchema": OBJECT}], "nextCursor": "2"},
    "2": {"tools": [{"name": "second", "title": "The second", "inputSchema": OBJECT}]},
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or the error that an old server has for a method it does not know."""
    if request["method"] == "initialize":
        about = {"name": "liar", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}}
    if request["method"] == "tools/list":
        return {"result": PAGES[(request.get("params") or {}).get("cursor")]}
    if request["method"] == "tools/call":
        return {"result": {"content": "nonsense"}}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)  # noqa: T201 (the wire)
