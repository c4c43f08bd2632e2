"""A server as a user names it, and its tools as an agent takes them.

Tools outlive connections: each call uses the connection of its own event loop, and opens one when there is none or the
last one has ended. A server that can't be reached was asked to do nothing, so the attempt is a `ToolFailed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

import mcp

import runner
from runner import Call, ToolFailed
from runner.mcp import _content, _http, _leg, _terms
from runner.mcp._asking import Asking
from runner.mcp._leg import SOON, Progress
from runner.mcp._link import Link, ServerDown
from runner.mcp._terms import Terms, Trust

Transport = AbstractAsyncContextManager[Any]


class Server:
    """An MCP server, by its URL, its `mcp.StdioServerParameters`, or a function that makes an SDK transport.

    where         a function is called for each connection: the way to bring an HTTP client with a login
    trust         what its tools do: for all of them, or by name; see `Trust`. Default: a repeat may do it twice
    prefix        put before the tools' names, for two servers that use the same
    name          what errors call it; default its URL or command
    on_progress   called with the call, how much is done, of how much, and a message, when a server reports progress
    connect       seconds for a connection to open, a started process included
    mode          the SDK's: `auto` asks for the newest protocol first, `legacy` is for a server whose tools ask in the
                  middle of a call, which the newest protocol no longer lets them
    """

    def __init__(
        self,
        where: str | mcp.StdioServerParameters | Callable[[], Transport],
        *,
        trust: Trust | Mapping[str, Trust] = "once",
        prefix: str = "",
        name: str | None = None,
        on_progress: Progress | None = None,
        connect: float = 30.0,
        mode: str = "auto",
    ) -> None:
        self._where = where
        self._trust = trust
        self._prefix = prefix
        self._name = name or _called(where)
        self._on_progress = on_progress
        self._connect = connect
        self._mode = mode
        self._link: Link | None = None
        self._opening: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None
        self._asking: list[Asking] = []

    async def __aenter__(self) -> Self:
        """Connect. Raises `ServerDown`."""
        await self._linked()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; a server that was started for it ends. The next call opens another.

        Without it the connection ends with its event loop.
        """
        link, self._link = self._link, None
        if link is not None and link.loop is asyncio.get_running_loop():
            await link.close()

    async def tools(self) -> tuple[runner.Tool, ...]:
        """The server's tools, in its order, each with the terms that `trust` has for it.

        Raises `ServerDown`, and `runner.BadTool` when `trust` names a tool that is not there or contradicts itself.
        """
        listed = (await self._linked()).listed
        _terms.check(listed, self._trust)
        return tuple(self._tool(tool, _terms.of(tool, self._trust)) for tool in listed.values())

    def tools_sync(self) -> tuple[runner.Tool, ...]:
        """`tools`, for code without an event loop: it connects, lists, and disconnects; calls connect again."""

        async def listed() -> tuple[runner.Tool, ...]:
            async with self:
                return await self.tools()

        return asyncio.run(listed())

    async def ask(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """What a tool of this server returns, without a key: for lookups, which only read.

        Raises `ServerDown`, and whatever the SDK raises; an `isError` is returned as `{"isError": true, ...}`.
        """
        link = await self._linked()
        params = mcp.types.CallToolRequestParams(name=tool, arguments=dict(arguments or {}))
        return _content.value(await link.call(params, None))

    def _tool(self, listed: mcp.Tool, terms: Terms) -> runner.Tool:
        async def body(call: Call) -> Any:
            return await self._attempt(listed.name, terms, call)

        declare = runner.tool(
            name=f"{self._prefix}{listed.name}",
            schema=listed.input_schema | {"description": listed.description or listed.title or ""},
            effect=terms.effect,
            remembers=terms.remembers,
            approval=terms.approval,
            once_per=terms.once_per,
            timeout=terms.timeout,
            attempts=terms.attempts,
            secret=terms.secret,
        )
        made = declare(body)
        if terms.lookup is not None:
            made.lookup(lands_within=terms.lands_within)(terms.lookup)
        return made

    async def _attempt(self, tool: str, terms: Terms, call: Call) -> Any:
        asking = Asking(call.told)
        try:
            link = await self._linked()
        except ServerDown as down:
            raise ToolFailed(str(down), SOON) from down
        self._asking.append(asking)
        try:
            return await _leg.attempt(link, tool, terms, call, asking, self._on_progress)
        finally:
            self._asking.remove(asking)

    def _elicited(self, params: Any) -> mcp.types.ElicitResult:
        """A question that came in the middle of a call, as older servers ask. It is the only call's that can ask.

        Calls that can change something run one by one; of several reads at once nobody can say which one asks.
        """
        answers = [asking.form(params) for asking in self._asking]
        return answers[0] if len(answers) == 1 else mcp.types.ElicitResult(action="cancel")

    async def _linked(self) -> Link:
        loop = asyncio.get_running_loop()
        if self._opening is None or self._opening[0] is not loop:
            self._opening = (loop, asyncio.Lock())
        async with self._opening[1]:
            if self._link is None or not self._link.alive:
                self._link = Link(self._name, self._transport, self._elicited, self._mode)
                await self._link.open(self._connect)
            return self._link

    def _transport(self, statuses: dict[str, int]) -> Transport:
        if isinstance(self._where, str):
            return _http.transport(self._where, statuses)
        if isinstance(self._where, mcp.StdioServerParameters):
            return mcp.stdio_client(self._where)
        return self._where()


def _called(where: object) -> str:
    if isinstance(where, str):
        return where
    return where.command if isinstance(where, mcp.StdioServerParameters) else "(a transport of your own)"
