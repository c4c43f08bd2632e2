"""A world's tracker: a process of its own on 127.0.0.1, started when it is absent or gone.

The world's tracker is whoever holds the world's lock for it, and the lock's file says which process that is and where
it listens. Whoever finds the lock free starts a process that inherits it. So there are never two, and what a dead one
said is not believed: its port may be anybody's by now. The tracker ends when nobody needs it.

The server's libraries are imported when they are used: they take as long as all the rest.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path

from runner.triage import _files, _world
from runner.triage.errors import TrackerDown, WrongWorld

IDLE = 120.0
"""Seconds without a request after which the tracker ends."""
_STARTS = 3
_BETWEEN = 0.05
_ROOT = Path(__file__).parents[2]


async def url(world: Path, *, within: float = 20.0) -> str:
    """The address of the world's tracker, which is started if there is none.

    Raises `TrackerDown` when those that were started ended at once, or none listens `within` seconds; `WrongWorld`.
    """
    starts = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            while starts <= _STARTS:
                if await asyncio.to_thread(_start, world):
                    starts += 1
                elif len(words := _files.said(_lock(world))) == 2:  # noqa: PLR2004 (see `serve`)
                    return words[1]
                await asyncio.sleep(_BETWEEN)
    raise TrackerDown(str(world))


def kill(world: Path) -> None:
    """End the world's tracker by SIGKILL, if it has one: whoever needs it next has to start it."""
    held = _files.take(_lock(world))
    if held is not None:
        held.close()
    elif words := _files.said(_lock(world)):
        with suppress(OSError):
            os.kill(int(words[0]), signal.SIGKILL)


def _lock(world: Path) -> Path:
    return world / "tracker.lock"


def _start(world: Path) -> bool:
    """Start a process that is the world's tracker, unless there is one; whether it was started."""
    # -P and the path at the end: a `runner.py` in the directory where the command was typed must not be taken for ours.
    code = "import sys; sys.path.append(sys.argv.pop()); from runner.triage._tracker_process import main; main()"
    try:
        held = _files.take(_lock(world))
        if held is None:
            return False
        with closing(held), os.fdopen(_files.open_to_write(world / "tracker.log"), "ab") as log:
            subprocess.run(  # noqa: S603 (our own interpreter and our own words)
                [sys.executable, "-P", "-c", code, str(world.absolute()), str(held.descriptor), str(_ROOT)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=(held.descriptor,),
                check=False,
            )
    except OSError as error:
        raise WrongWorld(str(world), f"its tracker can't be started: {error.strerror}") from error
    return True


def main() -> None:
    """Leave the caller's session and serve the world that the first argument names, with the lock that it has open.

    The caller's child ends at once and its grandchild serves: nobody has to wait for it, and a signal to the agent's
    process group does not reach it.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    world = Path(sys.argv[1])
    asyncio.run(serve(world, _files.Held(_lock(world), int(sys.argv[2]))))


async def serve(
    world: Path,
    held: _files.Held,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Be the world's tracker until nobody has asked for `IDLE` seconds or the world is gone; its lock is free then."""
    import uvicorn  # noqa: PLC0415 (late: see above)

    from runner.triage._tracker import Tracker  # noqa: PLC0415 (the same)
    from runner.triage._tracker_store import Store  # noqa: PLC0415 (the same)

    with (
        closing(held),
        closing(Store(world / "tracker.sqlite")) as store,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        app = Tracker(store, lambda: _world.faults_of(world))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        held.say(os.getpid(), f"http://127.0.0.1:{listening.getsockname()[1]}")
        answered, since, state = 0, clock(), server.server_state
        while not serving.done() and held.still() and clock() - since < IDLE:
            await pause(1.0)
            if state.tasks or state.total_requests != answered:
                answered, since = state.total_requests, clock()
        held.say()
        server.should_exit = True
        await serving
