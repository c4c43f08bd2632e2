"""One connection to a server, owned by a task of its own.

The SDK's connection must be left by the task that entered it, and calls come from many tasks. So one task enters it,
waits, and leaves it; when that task's loop ends, so does the server's process. A connection that ended is never used
again: the next call opens another, which has certainly sent nothing yet. One that no new call is to use stays open for
those that use it, which may be of other runs.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import mcp
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from runner import RunError
from runner.mcp._elicitation import Elicitation
from runner.mcp._transport import FORGOTTEN, Legs, watched

_RESULT: TypeAdapter[Any] = TypeAdapter(mcp.types.CallToolResult | mcp.types.InputRequiredResult)
_CALL: ContextVar[Elicitation | None] = ContextVar("the call in whose answer over HTTP a message comes", default=None)
MOST_PAGES = 100
MOST_SAID = 600


class ServerDown(RunError):
    """An MCP server could not be reached, or did not speak the protocol; it was asked to do nothing."""

    sentence = "the MCP server {server} could not be reached: {why}"
    hint = (
        "Start it, or see what it says on stderr; then try again. Commands that only read, such as retrace, do without "
        "it when `Server(listing=FILE)` has kept what it lists."
    )
    server: str
    why: str


class Connection:
    """A connection that is open, or was. `tools` are the server's tools, in its order.

    `legs` are those in flight; whoever sends one puts it in and takes it out. `modern`: whether the server speaks a
    protocol without sessions. `turns`: whether calls of this server take turns, here and over later connections; set at
    the first question that does not say which call asks it.
    """

    def __init__(
        self,
        name: str,
        transport: Callable[[Legs], AbstractAsyncContextManager[Any]],
        mode: str,
        *,
        turns: threading.Event,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.legs: Legs = {}
        self.modern = False
        self.tools: list[mcp.Tool] = []
        self._name = name
        self._ended = asyncio.Event()
        self._transport = watched(transport(self.legs), self._ended)
        self._mode = mode
        self._users: list[Elicitation] = []
        self._turns = turns
        self._asking = 0
        self._changed = asyncio.Event()
        self._retired = False
        self._ready: asyncio.Future[mcp.Client] = loop.create_future()
        self._owner = loop.create_task(self._own(), name=f"refold-mcp-{name}")

    @property
    def alive(self) -> bool:
        """Whether a new call may use it."""
        return not (self._retired or self._ended.is_set() or self._owner.done())

    async def open(self, within: float) -> None:
        """Return when it is open and its tools are listed. Raises `ServerDown`, within `within` seconds."""
        try:
            async with asyncio.timeout(within):
                await asyncio.shield(self._ready)
        except TimeoutError:
            await self.close()
            raise ServerDown(self._name, f"no answer within {within:g} s") from None

    async def turn(self) -> bool:
        """Whether a new call may use it; if it waits for its turn first, it looks again who may."""
        if not (self._turns.is_set() and self._users):
            return True
        await self._changed.wait()
        return False

    async def close(self) -> None:
        """Leave the connection; a server that was started for it is ended."""
        self._ended.set()
        if not self._ready.done():
            self._owner.cancel()
        await asyncio.wait({self._owner})

    @asynccontextmanager
    async def used(self, elicitation: Elicitation) -> AsyncIterator[None]:
        """While a call uses it. When that is cut off no other uses it: a process that hangs answers none either."""
        self._users.append(elicitation)
        before = _CALL.set(elicitation)
        try:
            yield
        except asyncio.CancelledError:
            await self.retire()
            raise
        finally:
            _CALL.reset(before)
            self._users.remove(elicitation)
            self._wake()
            if self._retired and not self._users:
                self._ended.set()

    async def retire(self) -> None:
        """Let no other call use it, and leave it once the last that does has ended: now, if that is the caller."""
        self._retired = True
        if len(self._users) == 1:
            await self.close()

    async def _own(self) -> None:
        try:
            async with mcp.Client(
                self._transport, mode=self._mode, cache=None, elicitation_callback=self._asked
            ) as client:
                self.tools = await _listed(client)
                self.modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
                self._ready.set_result(client)
                await self._ended.wait()
        except (Exception, asyncio.CancelledError) as error:
            if not self._ready.done():
                said = "; ".join(map(_said, _leaves(error)))
                self._ready.set_exception(ServerDown(self._name, said[:MOST_SAID]))
                self._ready.exception()  # the task that opened it may have given up; then nobody reads this error
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._ended.set()

    async def _asked(self, context: Any, params: Any) -> mcp.types.ElicitResult:  # noqa: ARG002 (the SDK's signature)
        """A question that came in the middle of a call, as older servers ask: it names no call.

        Over HTTP it comes in the answer to the call's request, mostly, and the SDK passes on the context of that.
        """
        call = _CALL.get() or await self._asker()
        return call.form(params) if call in self._users else mcp.types.ElicitResult(action="cancel")

    async def _asker(self) -> Elicitation | None:
        """Which of the calls in flight, of one run or of several, asks a question: all others come to an end.

        When all that are left ask something, or one was cut off, which may have been the one, nobody can say: then each
        of them puts it to its person that it is to start again, in its turn.
        """
        self._turns.set()
        self._asking += 1
        self._wake()
        while len(self._users) > max(1, self._asking + sum(one.unclear for one in self._users)) and not self._retired:
            await self._changed.wait()
        self._asking -= 1
        if len(self._users) == 1 and not self._retired:
            return self._users[0]
        for one in self._users:
            one.unclear = True
        return None

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def relist(self) -> None:
        """Ask for the tools again: a call's headers follow from their schemas."""
        self.tools = await _listed(await self._ready)

    async def call(self, params: mcp.types.CallToolRequestParams, progress: Any) -> Any:
        """Send one leg of a call; its result, or the input that the server wants first.

        A result that does not fit the server's own schema is a result all the same, so it is not validated here.
        """
        session = (await self._ready).session
        request = mcp.types.CallToolRequest(params=params)
        try:
            return await session.send_request(request, _RESULT, progress_callback=progress)
        except mcp.MCPError:
            if FORGOTTEN in self.legs:
                await self.retire()  # the next call, read or lookup opens another
            raise


async def _listed(client: mcp.Client) -> list[mcp.Tool]:
    tools: list[mcp.Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools
    raise mcp.MCPError(0, f"its list of tools has more than {MOST_PAGES} pages")


def _said(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        wrong = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        return f"what it said does not follow the protocol ({'; '.join(wrong)})"
    return " ".join(f"{type(error).__name__}: {error}".split())


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
