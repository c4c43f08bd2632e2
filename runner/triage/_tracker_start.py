"""Finding a world's tracker, and starting it when it is absent or gone.

The address in the world is a hint: only a tracker that answers with the token written beside it is the one. Starting
one too many is harmless, because the lock lets one of them live.

The client's library is imported when the tracker is first talked to: it takes as long as all the rest, and a life that
dies over the code never needs it.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from runner.triage._tracker_process import Address
from runner.triage.errors import TrackerDown

if TYPE_CHECKING:
    import httpx

_LOOKS = 60
_BETWEEN = 0.05
_ROOT = Path(__file__).parents[2]


async def url(world: Path, *, within: float = 20.0) -> str:
    """The address of the world's tracker, which is started if it does not answer.

    Raises `TrackerDown` when none answers `within` seconds.
    """
    try:
        async with asyncio.timeout(within):
            while True:
                address = await answering(world)
                if address is None:
                    await asyncio.to_thread(spawn, world)
                    address = await _first_answer(world)
                if address is not None:
                    return address.url
    except TimeoutError:
        raise TrackerDown(str(world), within) from None


async def _first_answer(world: Path) -> Address | None:
    """What the tracker just started says, or None: then it ended, perhaps because one that was ending held the lock."""
    for _ in range(_LOOKS):
        address = await answering(world)
        if address is not None:
            return address
        await asyncio.sleep(_BETWEEN)
    return None


async def answering(world: Path) -> Address | None:
    """The address of the tracker that answers for this world now, or None."""
    import httpx  # noqa: PLC0415 (late: see above)

    with suppress(OSError, msgspec.MsgspecError, httpx.HTTPError, ValueError):
        address = msgspec.json.decode((world / "tracker.address").read_bytes(), type=Address)
        async with client(address.url, timeout=2.0) as http:
            health = await http.get("/health")
        if health.json().get("token") == address.token:
            return address
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
    with (world / "tracker.log").open("ab") as log:
        subprocess.run(  # noqa: S603 (our own interpreter and our own words)
            [sys.executable, "-P", "-c", code, str(world.absolute()), str(_ROOT)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            check=False,
        )
