"""The console as a browser finds it: at an address, served by a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import uvicorn

import runner
from runner import ui
from tests.review.audit.browser import Browser


class Served:
    """The console of a place, in the process of a worker that `works`: in a thread of its own, at an address."""

    def __init__(self, browser: Browser, runs: Path, agents: list[runner.Agent], *, works: bool = True) -> None:
        self._browser, self._runs, self._agents = browser, runs, agents
        self._works = agents if works else []
        self._left: asyncio.Event
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> str:
        self._thread.start()
        assert self._up.wait(60)
        return f"http://127.0.0.1:{self.port}/"

    def __exit__(self, *_: object) -> None:
        self._browser.open("about:blank")  # or its page would miss the server
        self._loop.call_soon_threadsafe(setattr, self._server, "should_exit", True)
        self._thread.join(60)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = ui.app(self._runs, token="t", who="ann", agents=self._agents)  # noqa: S106 (of this test alone)
        config = uvicorn.Config(app, port=0, log_level="error", lifespan="on", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        async with runner.Worker(self._works, runs=self._runs):
            serving = asyncio.create_task(self._server.serve())
            while not self._server.started:  # noqa: ASYNC110 (it has no event for that)
                await asyncio.sleep(0.01)
            self.port = self._server.servers[0].sockets[0].getsockname()[1]
            self._up.set()
            await serving
