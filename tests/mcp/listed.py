"""An MCP server written by hand that lists and answers what a file says, read anew for each request.

`python -S listed.py FILE`, a JSON object: `tools` is what it lists, `result` what each call returns, `before` bytes
in hex that it prints before that. Each call adds a
line to FILE.calls.
"""

import json
import sys
from pathlib import Path
from typing import Any


def answer(request: dict[str, Any], file: Path) -> dict[str, Any]:
    """The result of a request, or the error that an old server has for a method it does not know."""
    told = json.loads(file.read_text())
    if request["method"] == "initialize":
        about = {"name": "listed", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}}
    if request["method"] == "tools/list":
        return {"result": {name: told[name] for name in ("tools", "nextCursor") if name in told}}
    if request["method"] == "tools/call":
        with file.with_suffix(".calls").open("a") as calls:
            sys.stdout.buffer.write(bytes.fromhex(told.get("before", "")))
            calls.write(json.dumps(request["params"].get("arguments")) + "\n")
        return {"result": told.get("result", {"content": [{"type": "text", "text": "ok"}]})}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin if __name__ == "__main__" else ():
    message = json.loads(line)
    if "id" in message:
        said = answer(message, Path(sys.argv[1]))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)  # noqa: T201 (the wire)
