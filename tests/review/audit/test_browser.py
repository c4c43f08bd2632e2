"""The page in a real browser: it looks right, opens, filters, copies, and complains of nothing.

Long, so they run with `make test-full`. `REFOLD_PICTURES=DIR` keeps what was seen, for eyes.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import eventlog
from tests.cli.conftest import Refold
from tests.review.audit import stories
from tests.review.audit.browser import Browser
from tests.review.audit.test_report import HOSTILE
from tests.support import ROOT
from tests.support.disks import Quick
from tests.support.figures import FIGURES
from tests.support.unmeasured import environment

pytestmark = [pytest.mark.full, pytest.mark.fault("a page that runs what it shows")]

PNG = b"\x89PNG\r\n\x1a\n"
WIDE = "return document.documentElement.scrollWidth"
SHOWN = "return [...document.querySelectorAll('#rows > .item')].filter(i => !i.hidden).map(i => i.id)"

Report = Callable[..., Path]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One window for these tests."""
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as window:
        yield window


@pytest.fixture
def report(refold: Refold, tmp_path: Path) -> Report:
    """The page of a run, as a file."""

    def write(run: str, *words: object) -> Path:
        file = tmp_path / "page.html"
        assert refold("report", run, "-o", file, *words).status == 0
        return file

    return write


@pytest.fixture(scope="module")
def triage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The triage job, killed in its patch and carried on: a directory of runs with that one in it."""
    runs = tmp_path_factory.mktemp("triage") / "runs"
    words = ["triage", "--task", "m1-done-after-delete", "--runs", str(runs), "--approve", "off"]
    for more, status in ((["--die-after", "code_patch"], -9), ([], 0)):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "runner._cli", *words, *more],
            env=environment(PYTHONPATH=str(ROOT)),
            capture_output=True,
            check=False,
        )
        assert done.returncode == status, done.stderr.decode()
    return runs


def seen(browser: Browser, name: str) -> None:
    """Take a picture, and keep it where somebody asked for it."""
    picture = browser.picture()
    assert picture.startswith(PNG)
    assert len(picture) > 10_000
    if place := os.environ.get("REFOLD_PICTURES"):
        (Path(place) / f"{name}.png").write_bytes(picture)


def until_shown(browser: Browser, wanted: list[str]) -> None:
    """The filter waits for a pause in the typing, so ask until these rows alone are left; ten seconds at most."""
    ask = (
        "const done = arguments[arguments.length - 1], wanted = JSON.stringify(arguments[0]), end = Date.now() + 10000;"
        "const look = () => {"
        " const now = [...document.querySelectorAll('#rows > .item')].filter(i => !i.hidden).map(i => i.id);"
        " if (JSON.stringify(now) === wanted || Date.now() > end) done(now); else setTimeout(look, 20); }; look();"
    )
    assert browser.wait(ask, wanted) == wanted


def test_the_triage_run_is_a_page_that_opens_filters_and_copies(browser: Browser, report: Report, triage: Path) -> None:
    """By day, by night, on a phone and on paper; and the console hears nothing."""
    (run,) = eventlog.store(triage).runs()
    browser.look(width=1280, height=1400)
    browser.open(report(run, "--runs", triage))
    assert browser.run("return document.title") == f"{run} - refold report"
    seen(browser, "light")
    everything = browser.run(SHOWN)
    assert len(everything) == 34

    browser.click(".findings a[href='#call-8.0']")
    assert browser.run("return document.getElementById('call-8.0').open")
    assert "self._reindex()" in browser.run("return document.getElementById('call-8.0').innerText")
    seen(browser, "opened")
    browser.click("#call-8\\.0 > summary .tool")
    assert not browser.run("return document.getElementById('call-8.0').open")
    browser.click(".chart-area a[href='#call-12.0']")
    assert "done-after-delete" in browser.run("return document.getElementById('call-12.0').innerText")
    browser.click("#call-12\\.0 a.line")
    assert browser.run("return document.querySelector(':target').open")

    browser.type("#filter", "issue_file")
    until_shown(browser, ["ask-11", "call-12.0"])
    assert browser.run("return document.getElementById('counted').value") == "1 of 34"
    seen(browser, "filtered")
    browser.run("document.getElementById('filter').value = ''")
    browser.click("[data-show=asks]")
    assert browser.run(SHOWN) == ["ask-11", "call-12.0"]
    browser.type("#filter", "no such words")
    until_shown(browser, [])
    assert browser.run("return !document.getElementById('nothing').hidden")
    browser.click("[data-show='']")
    browser.type("#filter", "\ue00c")  # Escape
    until_shown(browser, everything)

    browser.click("h1 .id")
    browser.type("#filter", "\ue009v")  # Ctrl and V
    assert browser.run("return document.getElementById('filter').value") == run
    browser.run("document.getElementById('filter').value = ''")

    browser.look(width=1280, height=1400, dark=True)
    browser.run("scrollTo(0, 0)")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 19)"
    seen(browser, "dark")
    for width in (390, 320):
        browser.look(width=width, height=1400, mobile=True)
        assert browser.run(WIDE) <= width
    seen(browser, "phone")
    browser.look(width=800, height=1100, paper=True)
    assert browser.run("return getComputedStyle(document.querySelector('.controls')).display") == "none"
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("return document.querySelectorAll('#rows > .item:not([open])').length") == 0
    seen(browser, "paper")
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.complaints() == []


def test_a_page_of_hostile_texts_runs_nothing_and_keeps_its_width(browser: Browser, report: Report, runs: Path) -> None:
    """Markup, controls, marks that turn text around, and words without an end."""
    text = HOSTILE + "W" * 100_000
    run = stories.shelf(stories.plain(arguments=text, text=text, says=text, tool=text), runs, disk=Quick())
    browser.look(width=390, height=900, mobile=True)
    browser.open(report(run))
    browser.run("for (const item of document.querySelectorAll('details')) item.open = true")
    assert browser.run("return window.hit") is None
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.images.length") == 0
    assert browser.run(WIDE) <= 390
    seen(browser, "hostile")
    assert browser.complaints() == []


def test_the_policy_stops_what_an_escape_let_through(browser: Browser, report: Report, runs: Path) -> None:
    """The second lock, tried without the first: a script and a picture put into the page do nothing."""
    file = report(stories.shelf(stories.plain(), runs, disk=Quick()))
    page = file.read_text("utf-8")
    file.write_text(page.replace("<footer>", "<script>window.hit=1</script><img src=x onerror='window.hit=1'><footer>"))
    browser.open(file)
    assert browser.run("return window.hit") is None
    refused = browser.complaints()
    assert len(refused) >= 2
    assert all("Content Security Policy" in each for each in refused)


def test_the_page_of_a_thousand_events_is_small_and_quick(
    browser: Browser, report: Report, runs: Path, record_property: Callable[[str, object], None]
) -> None:
    """However much each of them holds."""
    story = stories.long(1000, "<b>&amp; wide " * 800)
    assert sum(len(events) for _, events in story.written) >= 1000
    file = report(stories.shelf(story, runs, disk=Quick()))
    assert file.stat().st_size < 5_000_000
    browser.look(width=1280, height=1400)
    browser.open(file)
    took = browser.run(
        "const began = performance.now(); const filter = document.getElementById('filter'); filter.value = 'look';"
        "document.querySelector('[data-show=call]').click(); return performance.now() - began"
    )
    record_property(FIGURES, f"{file.stat().st_size:,} bytes, filtered in {took:.0f} ms")
    assert took < 3000
    assert browser.complaints() == []
