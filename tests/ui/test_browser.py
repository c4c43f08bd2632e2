"""The console in a real browser: from the list to the end of a run, by mouse and by keyboard, with no complaint.

Long, so they run with `make test-full`. `REFOLD_PICTURES=DIR` keeps what was seen, for eyes. The accessibility rules
are those of axe-core, which npm fetches once.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from replay.events import MessageReceived
from runner._engine import feed
from tests.review.audit.browser import Browser
from tests.support import stage
from tests.ui import scenes
from tests.ui.served import Served

pytestmark = [pytest.mark.full, pytest.mark.fault("a page that runs what it shows")]

AXE = "axe-core@4.14.1"
WIDE = "return document.documentElement.scrollWidth"
UNTIL = (
    "const done = arguments[arguments.length - 1], end = Date.now() + 60000;"
    "const look = () => { const found = document.body.innerText.includes(arguments[0]);"
    " if (found || Date.now() > end) done(found); else setTimeout(look, 20); }; look();"
)
"""Asks the page until it shows a text; a minute at most."""
GONE = UNTIL.replace("document.body.innerText.includes(arguments[0])", "!document.querySelector(arguments[0])")
"""As above, until no element is found by a selector."""
TAB, ENTER = "\ue004", "\ue007"


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
        assert until(browser, UNTIL, "Paid.")
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
        tab_to(browser, "button.approve")
        browser.press(ENTER)
        stage.within(60, lambda: runner.read_state("r", runs).phase == "done")
        assert until(browser, UNTIL, "nothing is asked")
        assert browser.complaints() == []


@contextlib.contextmanager
def telling(browser: Browser, runs: Path, run: str) -> Iterator[threading.Event]:
    """The open page of a run that was told a text, whose reply comes once the event is set.

    The name is no other run's: a page that somebody closed may still listen for a moment.
    """
    seen = threading.Event()

    class Telling(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            if request.turn == 2 and request.heard is not None:
                request.heard("I am thinking about <b>it</b> now, slowly")
                await asyncio.to_thread(seen.wait, 60)
            return await super().ask(request)

    calls = runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"}))
    agent = runner.Agent(name="paying", model=Telling([calls, "Paid."]), tools=[scenes.pay])
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run=run))
    with Served(browser, runs, [agent]) as address:
        browser.open(f"{address}?token=t")
        browser.open(f"{address}runs/{run}")
        stage.within(60, lambda: feed.of(run).listeners)  # a reply that began before is told to nobody
        try:
            yield seen
        finally:
            seen.set()


def test_text_comes_to_an_open_page_and_what_is_open_stays_open(browser: Browser, axe: str, tmp_path: Path) -> None:
    """While the model still writes; then the saved line takes its place."""
    runs = tmp_path / "runs"
    with telling(browser, runs, "streamed") as seen:
        browser.run("document.getElementById('line-1').open = true; document.getElementById('actions').open = true")
        runner.approve("streamed", "1.0-approve", "bob", runs=runs)
        assert until(browser, UNTIL, "I am thinking about <b>it</b> now,")
        seen.set()
        assert until(browser, UNTIL, "Paid.")
        assert browser.run("return document.getElementById('line-1').open")
        assert browser.run("return document.getElementById('actions').open")
        looked_at(browser, axe, "streamed")


def test_text_stays_when_the_page_is_put_anew_that_was_asked_for_before_it_came(
    browser: Browser, tmp_path: Path
) -> None:
    """A line asks for the page, text comes, then the page, which knows nothing of it. It goes with the next line."""
    runs = tmp_path / "runs"
    with telling(browser, runs, "renewed") as seen:
        browser.run(
            "const real = window.fetch, held = new Promise((done) => { window.release = done; });"
            "window.fetch = async (...given) => { const answer = await real(...given); await held; return answer; };"
        )
        runner.approve("renewed", "1.0-approve", "bob", runs=runs)
        assert until(browser, UNTIL, "I am thinking about <b>it</b> now,")
        browser.run("window.release()")
        assert until(browser, GONE, "#live button.approve")
        assert "I am thinking about <b>it</b> now," in browser.run("return document.body.innerText")
        seen.set()
        assert until(browser, UNTIL, "Paid.")
        assert until(browser, GONE, "#text:not([hidden])")


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


def until(browser: Browser, script: str, what: str) -> bool:
    """Wait, through the loading of another page too: the one that was asked may be gone."""
    for _ in range(5):
        with contextlib.suppress(urllib.error.HTTPError):
            return bool(browser.wait(script, what))
    return False


def tab_to(browser: Browser, selector: str) -> None:
    """Go on with the Tab key until an element has the focus."""
    for _ in range(120):
        browser.press(TAB)
        if browser.run("return document.activeElement.matches(arguments[0])", selector):
            return
    raise AssertionError(f"Tab never comes to {selector}")


def types(browser: Browser, text: str) -> None:
    """Type where the focus is."""
    for letter in text:
        browser.press(letter)


def test_a_call_in_doubt_is_settled_and_its_run_resumed_by_keyboard(browser: Browser, axe: str, tmp_path: Path) -> None:
    """Its page says on which rung it is and what each one said, and goes on by itself to the end."""
    runs = tmp_path / "runs"
    agent = scenes.launching()
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="d"))
    with Served(browser, runs, [agent], works=False) as address:
        browser.look(width=1280, height=1000)
        browser.open(f"{address}?token=t")
        tab_to(browser, "tr.asks a")
        browser.press(ENTER)
        assert until(browser, UNTIL, "may have happened. Now: a person must say whether it happened")
        assert "the line went dead" in browser.run("return document.querySelector('#live .note').innerText")
        looked_at(browser, axe, "doubt")
        tab_to(browser, ".answers input[name=text]")
        types(browser, "it flew")
        browser.press(ENTER)
        assert until(browser, UNTIL, "Now: a person has said what is to be done")
        tab_to(browser, "#actions > summary")
        browser.press(ENTER)
        tab_to(browser, "form[action$='/resume'] button")
        looked_at(browser, axe, "settled")
        browser.press(ENTER)
        assert until(browser, UNTIL, "It flies.")
        looked_at(browser, axe, "resumed")
    assert "it flew" in stage.results(runs, "d")["1.0"].text


def test_a_run_is_forked_after_a_look_written_to_and_stopped_for_good_by_keyboard(
    browser: Browser, axe: str, tmp_path: Path
) -> None:
    """What the fork would repeat is listed before; the log has who said what."""
    runs = tmp_path / "runs"
    agent = scenes.paying()
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="r"))
    runner.approve("r", "1.0-approve", "bob", runs=runs)
    stage.finished(runner.resume_sync("r", agent, runs=runs))
    with Served(browser, runs, [agent], works=False) as address:
        browser.look(width=390, height=844, mobile=True)
        browser.open(f"{address}?token=t")
        browser.open(f"{address}runs/r")
        tab_to(browser, "#actions > summary")
        browser.press(ENTER)
        tab_to(browser, "form[action$='/fork'] input[name=at]")
        types(browser, "2")  # what is there is selected
        browser.press(ENTER)
        assert until(browser, UNTIL, "came to paid 7 to ann")
        looked_at(browser, axe, "preview")
        tab_to(browser, "form[action$='/fork'] button")
        browser.press(ENTER)
        assert until(browser, UNTIL, "Forked from")
        (fork,) = (info.run for info in runner.list_runs(runs) if info.run != "r")
        tab_to(browser, "#actions > summary")
        browser.press(ENTER)
        tab_to(browser, "form[action$='/resume'] button")
        browser.press(ENTER)
        assert until(browser, UNTIL, "paid 7 to ann")
        assert until(browser, UNTIL, "digest")
        looked_at(browser, axe, "guarded")
        browser.run("document.getElementById('actions').open = true")
        tab_to(browser, "form[action$='/send'] textarea")
        types(browser, "not so fast")
        browser.press(TAB)
        browser.press(ENTER)
        stage.within(60, lambda: "not so fast" in str(stage.events(runs, MessageReceived, fork)))
        assert until(browser, GONE, "#actions[open]")
        tab_to(browser, "#actions > summary")
        browser.press(ENTER)
        tab_to(browser, "form[action$='/stop'] button")
        looked_at(browser, axe, "written")
        browser.press(ENTER)
        assert until(browser, GONE, "form[action$='/stop']")
        looked_at(browser, axe, "over")
        assert browser.run(WIDE) <= 390
    stopped = runner.read_state(fork, runs).stopped
    assert stopped is not None
    assert (stopped.reason, stopped.detail, stopped.final) == ("StoppedByPerson", "by ann", True)
