"""The programs of the guide that need somebody to drive them: a web application, a notebook."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs import documents
from tests.docs.examples import executed

GUIDE = "runner/README.md"


def test_a_run_is_asked_for_and_looked_at_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request again finds the run that the first one began."""
    app = executed(documents.section(GUIDE, "In a web application"), tmp_path, monkeypatch).names["app"]

    async def drive() -> list[httpx.Response]:
        async with app.router.lifespan_context(app) as state:

            async def served(scope: Any, receive: Any, send: Any) -> None:
                await app({**scope, "state": state}, receive, send)

            async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://x") as client:
                asked = [await client.post("/runs/order-7", content="Where is order 7?") for _ in range(2)]
                for _ in range(1_000):
                    found = await client.get("/runs/order-7")
                    if found.json()["phase"] == "done":
                        return [*asked, found]
                    await asyncio.sleep(0.01)
                return asked

    *asked, found = asyncio.run(drive())
    assert [(one.status_code, one.json()) for one in asked] == [(202, {"run": "order-7"})] * 2
    assert found.json() == {"phase": "done", "answer": "Order 7 was sent on Monday.", "questions": []}


def test_a_cell_of_a_notebook_awaits_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a notebook compiles it, after a cell with the agent of the other programs; run again, it is done at once."""
    names = executed(documents.section(GUIDE, "In a web application"), tmp_path, monkeypatch).names
    (cell,) = documents.section(GUIDE, "In a notebook").blocks("ipython")
    for _ in range(2):
        found = eval(compile(cell, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)  # noqa: S307 (our own document)
        assert inspect.iscoroutine(found)
        asyncio.run(found)
        assert names["outcome"].finished().answer == "Order 7 was sent on Monday."
