"""A tracker in the test's own process, over a real file, asked without a socket."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from runner.triage._tracker import Tracker
from runner.triage._tracker_store import Store
from runner.triage._world import TrackerFaults

DRAFT = {"cause": "done-after-delete", "title": "it crashes", "body": "IndexError"}
REMARK = {"text": "the fix is in"}


class Service:
    """A tracker in this process, over a real file, with a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = datetime(2026, 11, 29, tzinfo=UTC)
        self.faults = TrackerFaults()
        self.file = folder / "tracker.sqlite"
        self.store = Store(self.file, lambda: self.now)
        self.app = Tracker(self.store, lambda: self.faults)

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()

    def ask(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send these at the same time."""

        async def all_of_them() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return list(await asyncio.gather(*(client.request(m, p, **more) for m, p, more in requests)))

        return asyncio.run(all_of_them())

    def post(self, content: object = DRAFT, key: str | None = None) -> httpx.Response:
        """One request to file an issue."""
        return self.ask(posted(content, key))[0]

    def note(self, content: object = REMARK, key: str | None = None, issue: int = 1) -> httpx.Response:
        """One request to comment."""
        method, path, more = posted(content, key)
        return self.ask((method, f"{path}/{issue}/comments", more))[0]

    def get(self, path: str, **params: str) -> httpx.Response:
        """One question."""
        return self.ask(("GET", path, {"params": params}))[0]


def posted(content: object = DRAFT, key: str | None = None) -> tuple[str, str, dict[str, Any]]:
    """A request to file an issue."""
    return "POST", "/issues", {"json": content, "headers": {"Idempotency-Key": key} if key else {}}
