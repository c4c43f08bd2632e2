"""The tracker's process: one for a world, on 127.0.0.1 alone, gone when nobody needs it.

The lock decides which process is the world's tracker, before anything else is read: of two started at once the second
ends without a word. The address is written only after the socket listens.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from runner.triage import _files, _hold, _manners

IDLE = 120.0
"""Seconds without a request after which the tracker ends."""


class Address(msgspec.Struct, frozen=True):
    """Where a world's tracker listens. `token` tells it from a stranger who got its port after it."""

    url: str
    pid: int
    token: str


def serve(
    world: Path,
    *,
    idle: float = IDLE,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> bool:
    """Be the world's tracker until nobody has asked for `idle` seconds or the world is gone; False if it has one."""
    held = _hold.take(world / "tracker.lock")
    if held is None:
        return False
    try:
        asyncio.run(_serve(world, held, idle, clock, pause))
    finally:
        held.release()
    return True


async def _serve(
    world: Path, held: _hold.Held, idle: float, clock: Callable[[], float], pause: Callable[[float], Awaitable[None]]
) -> None:
    import uvicorn  # noqa: PLC0415 (late: a second starter ends before it pays for this)

    from runner.triage._tracker import Idle, Tracker  # noqa: PLC0415 (the same)
    from runner.triage._tracker_store import Store  # noqa: PLC0415 (the same)

    store = Store(world / "tracker.sqlite", lambda: datetime.now(UTC))
    quiet, token = Idle(idle, clock), secrets.token_hex(16)
    app = Tracker(store, lambda: _manners.read(world), quiet, token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none"))
    address = world / "tracker.address"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        _files.replace(address, msgspec.json.encode(Address(url, os.getpid(), token)))
        while not (serving.done() or quiet.over()) and held.still():
            await pause(min(1.0, idle / 4))
        server.should_exit = True
        if held.still():
            address.unlink(missing_ok=True)
        await serving
    store.close()


def main() -> None:
    """`python -m runner.triage._tracker_process WORLD`: leave the caller's session and serve.

    The caller's child ends at once and its grandchild serves: nobody has to wait for it, and a signal to the agent's
    process group does not reach it.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    serve(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
