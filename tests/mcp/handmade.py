"""An MCP server written by hand, without the SDK, that does what a good server does not.

`python -S handmade.py [FILE]`. It lists its tools on two pages. What a call does depends on the tool: `first` answers
nonsense, `half` with half of an emoji, and `hangs` never answers in the first process, the one that makes FILE.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

OBJECT = {"type": "object"}
PAGES: dict[str | None, dict[str, Any]] = {
    None: {"tools": [{"name": "first", "inputSchema": OBJECT}], "nextCursor": "2"},
    "2": {
        "tools": [
            {"name": "second", "title": "The second", "inputSchema": OBJECT},
            {"name": "half", "inputSchema": OBJECT},
            {"name": "hangs", "inputSchema": OBJECT},
        ]
    },
}


def call(tool: str) -> dict[str, Any]:
    """The result of a call."""
    if tool == "half":
        return {"content": [{"type": "text", "text": 'half \ud83d of \\ud83d, whole 😀 "'}]}
    if tool == "hangs":
        first = Path(sys.argv[1])
        if not first.exists():
            first.touch()
            time.sleep(600)
        return {"content": [{"type": "text", "text": "awake"}]}
    return {"content": "nonsense"}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The result of a request, or the error that an old server has for a method it does not know."""
    params = request.get("params") or {}
    if request["method"] == "initialize":
        about = {"name": "handmade", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}}
    if request["method"] == "tools/list":
        return {"result": PAGES[params.get("cursor")]}
    if request["method"] == "tools/call":
        return {"result": call(params["name"])}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)  # noqa: T201 (the wire)
