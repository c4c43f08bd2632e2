"""The console in a real browser: from the list to the end of a run, by mouse and by keyboard, with no complaint.

Long, so they run with `make test-full`. `REFOLD_PICTURES=DIR` keeps what was seen, for eyes. The accessibility rules
are those of axe-core, which npm fetches once.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import runner
import runner.testing
from runner import ui
from tests.review.audit.browser import Browser
from tests.support import stage
from tests.ui import scenes

pytestmark = [pytest.mark.full, pytest.mark.fault("a page that runs what it shows")]

AXE = "axe-core@4.14.1"
WIDE = "return document.documentElement.scrollWidth"
UNTIL = (
    "const done = arguments[arguments.length - 1], end = Date.now() + 60000;"
    "const look = () => { const found = document.body.innerText.includes(arguments[0]);"
    " if (found || Date.now() > end) done(found); else setTimeout(look, 20); }; look();"
)
"""Asks the page until it shows a text; a minute at most."""


class Served:
    """The console of a place, in a worker's process: a thread of its own, with an address that holds the token."""

    def __init__(self, browser: Browser, runs: Path, agents: list[runner.Agent]) -> None:
        self._browser = browser
        self._runs, self._agents = runs, agents
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
        config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        async with runner.Worker(self._agents, runs=self._runs):
            serving = asyncio.create_task(self._server.serve())
            while not self._server.started:  # noqa: ASYNC110 (it has no event for that)
                await asyncio.sleep(0.01)
            self.port = self._server.servers[0].sockets[0].getsockname()[1]
            self._up.set()
            await serving


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One window for these tests."""
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as window:
        yield window


@pytest.fixture(scope="module")
def axe(request: pytest.FixtureRequest) -> str:
    """The script that looks for what keeps people out."""
    kept = request.config.cache.mkdir("axe") / f"{AXE}.js"
    if not kept.exists():
        if shutil.which("npm") is None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)("npm is missing, which fetches axe-core")
        packed = subprocess.run(["npm", "pack", AXE, "--silent"], cwd=kept.parent, capture_output=True, check=True)
        archive = kept.parent / packed.stdout.decode().split()[-1]
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as files:
            script = files.extractfile("package/axe.min.js")
            assert script is not None
            kept.write_bytes(script.read())
    return kept.read_text("utf-8")


def looked_at(browser: Browser, axe: str, name: str) -> None:
    """Nothing keeps anybody out, the console heard nothing, and a picture is kept where somebody asked for it."""
    found: list[dict[str, Any]] = browser.wait(
        axe + "; const done = arguments[arguments.length - 1];"
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']}).then(r => done(r.violations.map("
        "v => ({id: v.id, impact: v.impact, nodes: v.nodes.map(n => n.html).slice(0, 3)}))));"
    )
    assert [one for one in found if one["impact"] in ("serious", "critical")] == [], name
    assert browser.complaints() == [], name
    if place := os.environ.get("REFOLD_PICTURES"):
        (Path(place) / f"console-{name}.png").write_bytes(browser.picture())


def test_a_run_is_found_answered_and_seen_to_its_end(browser: Browser, axe: str, tmp_path: Path) -> None:
    """List, run, approve; the page of the run goes on by itself until the run is done."""
    runs = tmp_path / "runs"
    agent = scenes.paying(scenes.HOSTILE)
    stage.asked(runner.start_sync(agent, f"pay {scenes.HOSTILE}", runs=runs, run="r"))
    with Served(browser, runs, [agent]) as address:
        browser.look(width=1280, height=1000)
        browser.open(f"{address}?token=t")
        assert browser.run("return location.search") == ""
        looked_at(browser, axe, "list")
        browser.click("tr.asks a")
        looked_at(browser, axe, "run")
        browser.click("#live button.approve")
        assert browser.wait(UNTIL, "Paid.")
        looked_at(browser, axe, "done")
        assert browser.run("return document.querySelectorAll('#live button.approve').length") == 0
        browser.click("#rows > .call > summary")
        assert browser.run("return document.querySelectorAll('#rows > .call[open]').length") == 1
    assert runner.read_state("r", runs).phase == "done"


def test_the_keyboard_alone_answers(browser: Browser, tmp_path: Path) -> None:
    """Whoever has no mouse gets to the button with Tab and says yes with Enter."""
    runs = tmp_path / "runs"
    agent = scenes.paying()
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    with Served(browser, runs, [agent]) as address:
        browser.look(width=1280, height=1000)
        browser.open(f"{address}?token=t")
        browser.open(f"{address}inbox")
        for _ in range(20):
            browser.press("\ue004")
            if browser.run("return document.activeElement.className") == "approve":
                break
        browser.press("\ue007")
        stage.within(60, lambda: runner.read_state("r", runs).phase == "done")
        assert browser.wait(UNTIL, "nothing is asked")
        assert browser.complaints() == []


def test_text_comes_to_an_open_page_and_what_is_open_stays_open(browser: Browser, axe: str, tmp_path: Path) -> None:
    """While the model still writes; then the saved line takes its place."""
    runs = tmp_path / "runs"
    seen = threading.Event()

    class Telling(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            if request.turn == 2 and request.heard is not None:
                request.heard("I am thinking about <b>it</b> now, slowly")
                await asyncio.to_thread(seen.wait, 60)
            return await super().ask(request)

    calls = runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"}))
    agent = runner.Agent(name="paying", model=Telling([calls, "Paid."]), tools=[scenes.pay])
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    with Served(browser, runs, [agent]) as address:
        browser.open(f"{address}?token=t")
        browser.open(f"{address}runs/r")
        browser.run("document.getElementById('line-1').open = true; document.getElementById('actions').open = true")
        runner.approve("r", "1.0-approve", "bob", runs=runs)
        try:
            assert browser.wait(UNTIL, "I am thinking about <b>it</b> now,")
        finally:
            seen.set()
        assert browser.wait(UNTIL, "Paid.")
        assert browser.run("return document.getElementById('line-1').open")
        assert browser.run("return document.getElementById('actions').open")
        looked_at(browser, axe, "streamed")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("mobile", [False, True], ids=["screen", "phone"])
def test_every_page_is_one_by_day_by_night_and_on_a_phone(
    browser: Browser, axe: str, tmp_path: Path, *, dark: bool, mobile: bool
) -> None:
    """Nothing is pushed off the screen, and nothing keeps anybody out."""
    runs = tmp_path / "runs"
    stage.asked(runner.start_sync(scenes.paying(scenes.HOSTILE * 5), stage.TASK, runs=runs, run="r"))
    stage.asked(runner.start_sync(scenes.launching(), "look " * 200, runs=runs, run="d-" + "x" * 100))
    with Served(browser, runs, []) as address:
        width = 390 if mobile else 1280
        browser.look(width=width, height=1000, dark=dark, mobile=mobile)
        browser.open(f"{address}?token=t")
        for path in ("", "inbox", "runs/r", "runs/d-" + "x" * 100, "runs/r/state?at=3", "runs/r/fork?at=2"):
            browser.open(address + path)
            browser.run("document.querySelectorAll('#live details, .answers details').forEach(d => d.open = true)")
            assert browser.run(WIDE) <= width, path
            name = path.partition("?")[0].replace("/", "-")[:12] or "list"
            looked_at(browser, axe, f"{name}-{'dark' if dark else 'light'}-{width}")
