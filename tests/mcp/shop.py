"""A real MCP server, made with the SDK: its tools write to a SQLite file and remember the keys that came with calls.

Tests order a death in `FILE.trouble`: "before 123" kills process 123 before the tool acts, and 0 is the server itself.
The server removes the file when it obeys, so each death happens once.
"""

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.shared.exceptions import MCPError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel

PREFIX = "dev.refold/"
TABLES = """
CREATE TABLE IF NOT EXISTS payment (id INTEGER PRIMARY KEY, key TEXT, cents INTEGER NOT NULL, note TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS remembered (key TEXT PRIMARY KEY, payment INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS seen (meta TEXT NOT NULL);
"""

server = MCPServer("shop", log_level="CRITICAL")


class Place:
    """Where this process keeps its file, and whether `sleepy` was called."""

    file = Path()
    sleeps: anyio.Event


PLACE = Place()


def serve(file: str, port: int = 0) -> None:
    """Keep the shop: over HTTP when there is a port, else over stdio."""
    PLACE.file, PLACE.sleeps = Path(file), anyio.Event()
    with closing(sqlite3.connect(file, timeout=10)) as db, db:
        db.executescript(TABLES)
    if port:
        server.run("streamable-http", port=port)
    else:
        server.run("stdio")


class Consent(BaseModel):
    """What `consent` asks a person."""

    agreed: bool
    note: str = ""


def meta(ctx: Any) -> dict[str, Any]:
    """What came beside the arguments, under our prefix."""
    return {name: value for name, value in (ctx.request_context.meta or {}).items() if name.startswith(PREFIX)}


def trouble(when: str) -> None:
    """Kill whom it was told to kill at this moment."""
    order = PLACE.file.with_suffix(".trouble")
    if order.exists() and order.read_text().startswith(when):
        pid = int(order.read_text().split()[1]) or os.getpid()
        order.unlink()
        os.kill(pid, signal.SIGKILL)


def write(key: str | None, cents: int, note: str) -> int:
    """The payment of this request: a new one, or the one that came under its key before; in one transaction."""
    with closing(sqlite3.connect(PLACE.file, timeout=10)) as db, db:
        db.execute("BEGIN IMMEDIATE")
        found = db.execute("SELECT payment FROM remembered WHERE key = ?", (key,)).fetchone()
        if found is None:
            row = db.execute("INSERT INTO payment (key, cents, note) VALUES (?, ?, ?)", (key, cents, note))
            found = (row.lastrowid,)
            if key is not None:
                db.execute("INSERT INTO remembered (key, payment) VALUES (?, ?)", (key, found[0]))
    return int(found[0])


def note_seen(ctx: Any) -> None:
    """Remember what a request's `_meta` held."""
    with closing(sqlite3.connect(PLACE.file, timeout=10)) as db, db:
        db.execute("INSERT INTO seen (meta) VALUES (?)", (json.dumps(meta(ctx)),))


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
async def pay(cents: int, ctx: Context, note: str = "") -> dict[str, int]:
    """Pay an amount."""
    note_seen(ctx)
    trouble("before")
    number = write(meta(ctx).get(f"{PREFIX}idempotency-key"), cents, note)
    trouble("after")
    return {"payment": number}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def find(key: str, ctx: Context) -> dict[str, int | None]:
    """The payment that came under a key."""
    note_seen(ctx)
    with closing(sqlite3.connect(PLACE.file, timeout=10)) as db:
        row = db.execute("SELECT id FROM payment WHERE key = ?", (key,)).fetchone()
    return {"payment": row[0] if row else None}


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False))
async def broken() -> str:
    """Go wrong, and say so."""
    raise ToolError("the till is empty")


@server.tool()
async def slow(ctx: Context) -> str:
    """Report progress."""
    for step in (1, 2):
        await ctx.report_progress(step, 2, f"step {step}")
        await anyio.sleep(0.05)
    return "slept"


@server.tool()
async def moody(code: int, ctx: Context) -> str:
    """Pay, and then answer with a protocol error all the same."""
    write(meta(ctx).get(f"{PREFIX}idempotency-key"), 1, str(code))
    raise MCPError(code, "not today")


@server.tool()
async def sleepy(seconds: float) -> str:
    """Take a long time."""
    PLACE.sleeps.set()
    await anyio.sleep(seconds)
    return "awake"


@server.tool()
async def consent(cents: int, ctx: Context, *, beside: bool = False) -> str:
    """Pay only when a person agrees; `beside`: ask while `sleepy` is under way, if it is within a second."""
    note_seen(ctx)
    with anyio.move_on_after(1 if beside else 0):
        await PLACE.sleeps.wait()
    answer = await ctx.elicit(f"Pay {cents} cents?", Consent)
    if answer.action != "accept" or not answer.data.agreed:
        return f"not paid ({answer.action})"
    return f"paid as {write(meta(ctx).get(f'{PREFIX}idempotency-key'), cents, answer.data.note)}"


async def ask(cents: int) -> Elicit[Consent]:
    """The question of `order`."""
    return Elicit(f"Order for {cents} cents?", Consent)


@server.tool()
async def order(cents: int, consent: Annotated[Consent, Resolve(ask)], ctx: Context) -> str:
    """Pay only when a person agrees, asked between two legs of the call."""
    note_seen(ctx)
    trouble("before")
    if not consent.agreed:
        return "not ordered"
    number = write(meta(ctx).get(f"{PREFIX}idempotency-key"), cents, consent.note)
    trouble("after")
    return f"ordered as {number}"


@server.tool()
async def shapeless() -> CallToolResult:
    """Return something that is not one text."""
    return CallToolResult(content=[TextContent(text="one"), TextContent(text="two")])


@server.tool()
async def patient(legs: int, ctx: Context) -> CallToolResult | InputRequiredResult:
    """Want to be asked again a few times before it answers, and ask nothing."""
    before = int(ctx.request_state or 0)
    if before < legs:
        return InputRequiredResult(request_state=str(before + 1))
    return CallToolResult(content=[TextContent(text=str(meta(ctx)[f"{PREFIX}idempotency-key"]))])


@server.tool()
async def picture() -> CallToolResult:
    """Return a picture, a sound and a file."""
    image = ImageContent(data="QUJDREVG", mime_type="image/png")
    sound = AudioContent(data="QUJDREVG", mime_type="audio/wav")
    file = EmbeddedResource(resource=BlobResourceContents(uri="file:///a", blob="QUJDREVG"))
    return CallToolResult(content=[TextContent(text="a picture"), image, sound, file])
