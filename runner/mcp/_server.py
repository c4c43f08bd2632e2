"""A server as a user names it, and its tools as an agent takes them.

Tools outlive connections: each call uses the connection of its own event loop, and opens one when there is none or the
last one has ended. A server that can't be reached was asked to do nothing, so the attempt is a `ToolFailed`.
"""

import asyncio
import functools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import mcp

import runner
from runner import BadTool, Call, ToolFailed
from runner._transport import SOON
from runner.mcp import _attempt, _tools, _transport
from runner.mcp._connection import Connection, ServerDown
from runner.mcp._elicitation import Elicitation
from runner.mcp._tools import Terms, Trust
from runner.mcp._transport import Legs

Transport = AbstractAsyncContextManager[Any]


class _Here:
    """The connection of one event loop."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.opening = asyncio.Lock()


@dataclass(eq=False, repr=False)
class Server:
    """An MCP server, by its URL, its `mcp.StdioServerParameters`, or a function that makes an SDK transport.

    where         a function is called for each connection: the way to bring an HTTP client with a login
    trust         what its tools do: an effect or a function for all of them; or, by name, an effect, a function, or the
                  options of `runner.tool`, with `lookup`, `visible_within` and `refused`: codes of protocol errors with
                  which this server answers before it has done anything, such as -32602 for invalid arguments. Every
                  other error of a call leaves it open. Default: a repeat may do it twice
    prefix        put before the tools' names, for two servers that use the same
    name          what errors call it; default its URL or command
    listing       a file that keeps what the server lists; the tools are those in it while the server is down, so that
                  what only compares a log with the agent needs no server
    connect       seconds for a connection to open, a started process included
    mode          the SDK's: `auto` asks for the newest protocol first, `legacy` is for a server whose tools ask in the
                  middle of a call, which the newest protocol no longer lets them; over stdio, where such a question
                  does not say which call asks, its calls take turns
    """

    where: str | mcp.StdioServerParameters | Callable[[], Transport]
    _: KW_ONLY
    trust: Trust = "non_idempotent"
    prefix: str = ""
    name: str | None = None
    listing: str | Path | None = None
    connect: float = 30.0
    mode: str = "auto"

    def __post_init__(self) -> None:
        self._loops: dict[asyncio.AbstractEventLoop, _Here] = {}
        self._turns = threading.Event()
        if self.mode == "legacy" and isinstance(self.where, mcp.StdioServerParameters):
            self._turns.set()

    @property
    def _name(self) -> str:
        """What errors call it."""
        if isinstance(self.where, mcp.StdioServerParameters):
            return self.name or self.where.command
        return self.name or (self.where if isinstance(self.where, str) else "(a transport of your own)")

    async def __aenter__(self) -> Self:
        """Connect. Raises `ServerDown`."""
        await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; a server that was started for it ends. The next call opens another.

        Without it the connection ends with its event loop.
        """
        here = self._here()
        connection, here.connection = here.connection, None
        if connection is not None:
            await connection.close()

    async def tools(self) -> tuple[runner.Tool, ...]:
        """The server's tools, in its order, each with the options that `trust` has for it.

        Raises `ServerDown`, and `runner.BadTool` when `trust` names a tool that is not there or contradicts itself, or
        when the server lists one that can't be used: with a name that is empty, given twice, very long or unprintable,
        with a schema that is no object, or very large or deep.
        """
        listed = await self._listed()
        _tools.check_trust([tool.name for tool in listed], self.trust)
        return tuple(self._checked(tool, listed) for tool in listed)

    async def _listed(self) -> list[mcp.Tool]:
        try:
            listed = (await self._connected()).tools
        except ServerDown:
            kept = _tools.kept(self.listing)
            if kept is None:
                raise
            return kept
        _tools.keep(self.listing, listed)
        return listed

    def tools_sync(self) -> tuple[runner.Tool, ...]:
        """`tools`, for code without an event loop: it connects, lists, and disconnects; calls connect again."""

        async def listed() -> tuple[runner.Tool, ...]:
            try:
                return await self.tools()
            finally:
                await self.close()

        return asyncio.run(listed())

    async def ask(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """What a tool of this server returns, without a key: for lookups, which only read.

        Raises `ServerDown`, and whatever the SDK raises; an `isError` is returned as `{"isError": true, ...}`.
        """
        connection = await self._turn()
        params = mcp.types.CallToolRequestParams(name=tool, arguments=dict(arguments or {}))
        async with connection.used(Elicitation([])):
            return _attempt.content(await connection.call(params, None))

    def _checked(self, tool: mcp.Tool, listed: Sequence[mcp.Tool]) -> runner.Tool:
        try:
            _tools.check(tool, listed)
            return self._tool(tool, _tools.of(tool, self.trust))
        except BadTool as bad:
            raise BadTool(bad.tool, f"{bad.why} (the MCP server {self._name} lists it)") from None

    def _tool(self, listed: mcp.Tool, terms: Terms) -> runner.Tool:
        options = {
            "name": _tools.model_name(f"{self.prefix}{listed.name}"),
            "schema": listed.input_schema | {"description": listed.description or listed.title or ""},
            **terms,
        }
        refused, lookup = options.pop("refused", ()), options.pop("lookup", None)
        visible_within = options.pop("visible_within", None)
        _tools.check_codes(listed.name, refused)

        async def body(call: Call) -> Any:
            return await self._attempt(listed.name, refused, call)

        made = runner.Tool(body, **options)
        made.validate = functools.partial(_tools.problem, made.schema)
        if lookup is not None or visible_within is not None:
            made.lookup(visible_within=visible_within)(lookup)
        return made

    async def _attempt(self, tool: str, refused: Collection[int], call: Call) -> Any:
        elicitation = Elicitation(call.operator_notes)
        try:
            connection = await self._turn()
        except ServerDown as down:
            raise ToolFailed(str(down), SOON) from down
        except asyncio.CancelledError as cut:
            raise ToolFailed(f"it was cut off before the MCP server {self._name} could be reached", SOON) from cut
        async with connection.used(elicitation):
            return await _attempt.attempt(connection, tool, refused, call, elicitation)

    def _here(self) -> _Here:
        """What the running event loop has of this server; of loops that were closed nothing is kept."""
        for loop in [loop for loop in list(self._loops) if loop.is_closed()]:
            self._loops.pop(loop, None)
        return self._loops.setdefault(asyncio.get_running_loop(), _Here())

    async def _connected(self) -> Connection:
        here = self._here()
        async with here.opening:
            if here.connection is None or not here.connection.alive:
                here.connection = Connection(self._name, self._transport, self.mode, turns=self._turns)
            await here.connection.open(self.connect)  # whoever asked for it before may have given up
            return here.connection

    async def _turn(self) -> Connection:
        """The connection, once a call may use it: what only lists the tools waits for no call."""
        while not await (connection := await self._connected()).turn():
            pass
        return connection

    def _transport(self, legs: Legs) -> Transport:
        if isinstance(self.where, str):
            return _transport.transport(self.where, legs)
        if isinstance(self.where, mcp.StdioServerParameters):
            where = self.where.model_copy(update={"encoding_error_handler": "replace"})  # half a character ends no call
            return mcp.stdio_client(where)
        return self.where()
