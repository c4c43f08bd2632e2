"""mcp: the tools of an MCP server as refold tools, over stdio or HTTP. It needs the extra `refold[mcp]`.

    server = runner.mcp.Server("http://127.0.0.1:8000/mcp", trust={"search": "reads"})
    agent = runner.Agent(name=..., model=..., tools=server.tools_sync())      # or: await server.tools()

A server's tools keep their schema; the key goes in `_meta`, beside the arguments. What a repeat does is not for a
server to say: its annotations are hints, and every tool is `non_idempotent` until `trust` says otherwise, with an
effect, with options, or with `hints`, which believes the annotations. A call that was lost is unknown, an `isError` a
result, and what the server wants to know from a person becomes a question of the run. `ServerDown`: it could not be
reached.
"""

from runner.mcp._connection import ServerDown
from runner.mcp._server import Server
from runner.mcp._tools import hints

__all__ = ["Server", "ServerDown", "hints"]
