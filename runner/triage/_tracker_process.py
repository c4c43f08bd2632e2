"""A world's tracker: a process of its own on 127.0.0.1, found by its address, started when it is absent or gone.

The lock decides which process is the world's tracker, before anything else is read: of two started at once the second
ends silently, so starting one too many is harmless. The address is written only after the socket listens, and it is a
hint: whoever has its port may be another process. So the world holds a token, too, which is never sent: a challenge is
answered with a signature. The tracker ends when nobody needs it.

The client's library and the server's are imported when they are used: each takes as long as all the rest.
"""

from __future__ import annotations

import asyncio
import fcntl
import hmac
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runner.triage import _files, _world
from runner.triage.errors import TrackerDown, WrongWorld

if TYPE_CHECKING:
    import httpx

IDLE = 120.0
"""Seconds without a request after which the tracker ends."""
_LOOKS = 60
_BETWEEN = 0.05
_ROOT = Path(__file__).parents[2]


class Address(msgspec.Struct, frozen=True):
    """Where a world's tracker listens. `token` is a secret that its process alone can sign with."""

    url: str
    pid: int
    token: str

    def proof(self, challenge: str) -> str:
        """What only a process that knows the token can answer to `challenge`."""
        return hmac.new(self.token.encode(), challenge.encode(), "sha256").hexdigest()


def address(world: Path) -> Address | None:
    """The address in a world's file, or None if there is none that can be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_files.read(world / "tracker.address"), type=Address)
    return None


async def url(world: Path, *, within: float = 20.0) -> str:
    """The address of the world's tracker, which is started if it does not answer.

    Raises `TrackerDown` when none answers `within` seconds.
    """
    looks = 0
    try:
        async with asyncio.timeout(within):
            while (found := await answering(world)) is None:
                # One that has just been started may end: perhaps one that was ending held the lock.
                if looks % _LOOKS == 0:
                    await asyncio.to_thread(spawn, world)
                looks += 1
                await asyncio.sleep(_BETWEEN)
            return found.url
    except TimeoutError:
        raise TrackerDown(str(world), within) from None


async def answering(world: Path) -> Address | None:
    """The address of the tracker that answers for this world now, or None."""
    import httpx  # noqa: PLC0415 (late: see above)

    there, challenge = address(world), secrets.token_hex(16)
    with suppress(OSError, httpx.HTTPError, ValueError, LookupError, TypeError):
        if there is not None:
            async with client(there.url, timeout=2.0) as http:
                health = await http.get("/health", params={"challenge": challenge})
            if hmac.compare_digest(health.json()["proof"], there.proof(challenge)):
                return there
    return None


def client(address: str, *, timeout: float) -> httpx.AsyncClient:
    """A client of the tracker at `address`; `timeout` in seconds for each of connecting, sending and receiving.

    It never goes through a proxy, and brings no certificates: reading them takes longer than a request, and this is
    plain HTTP.
    """
    import httpx  # noqa: PLC0415 (late: see above)

    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.AsyncClient(base_url=address, timeout=timeout, trust_env=False, verify=bare)


def spawn(world: Path) -> None:
    """Start a process that becomes the world's tracker unless there is one; returns when it has left this session."""
    # -P and the path at the end: a `runner.py` in the directory where the command was typed must not be taken for ours.
    code = "import sys; sys.path.append(sys.argv.pop()); from runner.triage._tracker_process import main; main()"
    try:
        descriptor = _files.open_to_write(world / "tracker.log")
    except OSError as error:
        raise WrongWorld(str(world), f"tracker.log can't be written: {error.strerror}") from error
    with os.fdopen(descriptor, "ab") as log:
        fcntl.fcntl(log, fcntl.F_SETFL, os.O_APPEND)  # two starters may write to it at once
        subprocess.run(  # noqa: S603 (our own interpreter and our own words)
            [sys.executable, "-P", "-c", code, str(world.absolute()), str(_ROOT)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            check=False,
        )


def main() -> None:
    """Leave the caller's session and serve the world that the first argument names.

    The caller's child ends at once and its grandchild serves: nobody has to wait for it, and a signal to the agent's
    process group does not reach it.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    serve(Path(sys.argv[1]))


def serve(
    world: Path,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> bool:
    """Be the world's tracker until nobody has asked for `IDLE` seconds or the world is gone; False if it has one."""
    held = _files.take(world / "tracker.lock")
    if held is None:
        return False
    try:
        asyncio.run(_serve(world, held, clock, pause))
    finally:
        held.release()
    return True


async def _serve(
    world: Path, held: _files.Held, clock: Callable[[], float], pause: Callable[[float], Awaitable[None]]
) -> None:
    import uvicorn  # noqa: PLC0415 (late: a second starter ends before it pays for this)

    from runner.triage._tracker import Tracker  # noqa: PLC0415 (the same)
    from runner.triage._tracker_store import Store  # noqa: PLC0415 (the same)

    with (
        closing(Store(world / "tracker.sqlite", lambda: datetime.now(UTC))) as store,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        here = Address(f"http://127.0.0.1:{listening.getsockname()[1]}", os.getpid(), secrets.token_hex(16))
        app = Tracker(store, lambda: _world.faults_of(world), here.proof)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        _files.replace(world / "tracker.address", msgspec.json.encode(here))
        answered, since, state = 0, clock(), server.server_state
        while not serving.done() and held.still() and clock() - since < IDLE:
            await pause(1.0)
            if state.tasks or state.total_requests != answered:
                answered, since = state.total_requests, clock()
        server.should_exit = True
        if held.still():
            (world / "tracker.address").unlink(missing_ok=True)
        await serving
