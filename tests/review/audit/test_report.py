"""`refold report`: a page that tells a run, harmless whatever the run has read, and the same for the same history."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import runner
from runner._cli._render._page._texts import Texts
from tests.cli.conftest import Refold
from tests.review.audit import stories
from tests.review.audit.pages import Page, digest
from tests.support import ROOT, tools
from tests.support.disks import Quick
from tests.support.story import Story
from tests.support.unmeasured import environment

pytestmark = [pytest.mark.fault("a page that runs what it shows")]

HOSTILE = (
    '</pre></script><script>window.hit=1</script><img src=x onerror="window.hit=1">&lt;b&gt;&amp;{{7*7}}{% raw %}'
    "\x1b[2J\x9b31m\u202eturned\u202c\u2066\x00\x7f]]><!-- <svg/onload=alert(1)> javascript:alert(1) \"' `"
)
BIDI = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

Written = Callable[..., str]


@pytest.fixture
def written(refold: Refold, tmp_path: Path) -> Written:
    """The page of a run, as text; `words` are further ones of the command line."""

    def write(run: str, *words: object) -> str:
        file = tmp_path / "page.html"
        said = refold("report", run, "-o", file, *words)
        assert said.status == 0, said.err
        return file.read_text("utf-8")

    return write


def test_the_page_tells_totals_findings_story_and_raw_events(written: Written, runs: Path) -> None:
    """What the command tells, and each event as it stands in the log."""
    page = Page(written(stories.shelf(stories.eventful(), runs, disk=Quick())))
    for words in (
        "$1.7500 of $5.0000",
        "0 of 10 resumes",
        "All is done.",
        "resumed by process 3 on h, not counted",
        "ann settled patch (4.0) with done: it was patched",
        "10 min 0 s nobody wrote; life 2 died",
        "again, as a repeat is harmless",
        "abb80fb8df16cf4f300d0ddda197b53f",
        "may it run? (the tool needs a yes) refuse, by ann, 2026-01-01 01:11:15 UTC: once is enough",
        "c.txt",
        "waits 4.0 s before asking the model again",
    ):
        assert words in page.text, words
    assert "waiting" not in page.ids
    for line in eventlog.store(runs).read(stories.RUN).lines:
        assert line.sum in page.text
        for raw in line.events:
            assert bytes(raw).decode() in page.text


def test_a_page_says_what_a_person_is_asked(written: Written, runs: Path) -> None:
    """With the exact arguments, while nobody has answered; a finished run asks nothing."""
    story = Story(tools.agent())
    story.reply(("send", '{"cause": "a&b"}'))
    page = Page(written(stories.shelf(story, runs, disk=Quick())))
    assert "1.0-approve: send, may it run? (the tool needs a yes)" in page.text
    assert '{"cause": "a&b"}' in page.text
    assert "waiting" in page.ids


def test_every_link_of_the_page_leads_to_a_place_in_it(written: Written, runs: Path) -> None:
    """It is whole in itself: nothing is fetched, and no link is dead."""
    page = Page(written(stories.shelf(stories.eventful(), runs, disk=Quick())))
    assert len(set(page.ids)) == len(page.ids)
    places = {f"#{name}" for name in page.ids}
    assert set(page.links) - places == {"data:,"}  # the icon that a browser would ask a server for
    assert len(set(page.links) & places) > 40
    assert "@import" not in page.inline["style"][0]
    assert "url(" not in page.inline["style"][0]


def test_the_policy_lets_a_browser_obey_our_style_and_our_script_alone(written: Written, runs: Path) -> None:
    """If an escape failed somewhere, what came through would still not run."""
    page = Page(written(stories.shelf(stories.plain(), runs, disk=Quick())))
    (style,), (script,) = page.inline["style"], page.inline["script"]
    assert page.policy.startswith("default-src 'none'; ")
    assert f"style-src {digest(style)};" in page.policy
    assert f"script-src {digest(script)};" in page.policy
    assert "unsafe" not in page.policy
    assert not [names for _, names in page.tags if "style" in names or any(name.startswith("on") for name in names)]


def test_hostile_text_changes_nothing_but_the_text(written: Written, runs: Path, tmp_path: Path) -> None:
    """Whatever a model or a tool wrote, the page has the tags of one about harmless words."""

    def page(text: str, place: Path) -> Page:
        story = stories.plain(arguments=text, text=text, says=text, tool=text)
        return Page(written(stories.shelf(story, place, disk=Quick()), "--runs", place))

    hostile, harmless = page(HOSTILE, runs), page("harmless", tmp_path / "other")
    assert hostile.tags == harmless.tags
    assert len(hostile.inline["script"]) == 1
    assert '<img src=x onerror="window.hit=1">&lt;b&gt;&amp;{{7*7}}{% raw %}' in hostile.text
    assert "\\x1b[2J\\x9b31m\\u202eturned\\u202c" in hostile.text
    assert not BIDI.search(hostile.text)


def test_ten_megabytes_of_text_make_no_page_of_ten_megabytes(written: Written, runs: Path) -> None:
    """What is left out is said, and where it is."""
    text = "<wide> " * 1_500_000
    page = written(stories.shelf(stories.plain(text=text), runs, disk=Quick()))
    assert len(page) < 1_000_000
    parsed = Page(page)
    assert "Cut here: all 10,500,000 characters are in the log." in parsed.text
    assert "&lt;wi\n" not in page


def test_secrets_are_masked_in_every_place_they_are_shown_in(written: Written, runs: Path) -> None:
    """In arguments, results and answers, and in the raw events, where JSON stands in JSON."""
    secrets = [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwx1234",
        "AKIAABCDEFGHIJKLMNOP",
        "hunter2hunter2",
    ]
    first, second, third, password = secrets
    text = json.dumps(
        {"password": password, "note": f"keys:\n{first}\n{second}", "deep": json.dumps({"k": f"\n{third}"})}
    )
    page = written(stories.shelf(stories.plain(arguments=text, text=text, says=text), runs, disk=Quick()))
    assert page.count("[secret]") > 8
    for secret in secrets:
        assert secret not in page, secret


def test_a_secret_across_the_end_of_what_is_shown_is_masked() -> None:
    """A text is cut after its secrets are found, wherever the cut falls."""
    secret = "sk-" + "abcdefgh" * 10
    texts = Texts(runner.review.SECRET_PATTERNS, [])
    texts.limit = 500
    for before in range(410, 510, 7):
        text = "x" * (before - 1) + " " + secret + " y" * 10_000
        shown = texts.shown(text)
        assert shown.cut == len(text)
        assert len(shown.html) <= 500
        assert "sk-" not in shown.html


def test_more_can_be_masked(written: Written, refold: Refold, runs: Path) -> None:
    """A secret that looks like any other word needs a pattern of the user's."""
    run = stories.shelf(stories.plain(text="the code is swordfish"), runs, disk=Quick())
    assert "swordfish" in written(run)
    assert "swordfish" not in written(run, "--redact", "sword[a-z]+", "--redact", "nothing")
    refold("report", run, "--redact", "(").ends(2, err="is not a regular expression")


def test_two_reports_of_one_history_are_the_same_bytes(written: Written, runs: Path, tmp_path: Path) -> None:
    """Whatever another process made of hashes, times and places."""
    run = stories.shelf(stories.eventful(), runs, disk=Quick())
    here, place = written(run), tmp_path / "elsewhere"
    place.mkdir()
    subprocess.run(
        [sys.executable, "-P", "-m", "runner._cli", "report", run, "--runs", os.path.relpath(runs, place)],
        cwd=place,
        env=environment(PYTHONPATH=str(ROOT), PYTHONHASHSEED="2", TZ="Asia/Tokyo", LC_ALL="C"),
        check=True,
        capture_output=True,
    )
    assert (place / f"{run}.html").read_text("utf-8") == here


def test_a_damaged_run_has_a_page_up_to_its_damage(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """The page says so before anything else, and the status says it to scripts."""
    run = stories.shelf(stories.plain(), runs, disk=Quick())
    file, out = runs / run / "seg-000001.jsonl", tmp_path / "page.html"
    file.write_bytes(file.read_bytes().replace(b'"result_recorded"', b'"result_RECORDED"', 1))
    refold("report", run, "-o", out).ends(5)
    page = Page(out.read_text("utf-8"))
    assert "This log is damaged." in page.text
    assert "What holds, lines 0 to 3, is told below." in page.text
    assert "line-3" in page.ids
    assert "line-4" not in page.ids
    file.write_bytes(b"x" + file.read_bytes()[1:])
    assert refold("report", run, "-o", out).status == 5
    assert "No line of it holds." in Page(out.read_text("utf-8")).text


def test_the_page_is_its_owners_alone_and_replaces_an_older_one(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """It holds what the agent read, as the log does."""
    run, out = stories.shelf(stories.plain(), runs, disk=Quick()), tmp_path / "page.html"
    told = refold("report", run, "-o", out, "--json").json
    size = out.stat().st_size
    assert told == {"run": run, "file": str(out), "bytes": size, "seq": 5}
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    out.write_bytes(out.read_bytes() + b"x" * 1000)
    assert refold("report", run, "-o", out).out == f"{out}  {size:,} bytes, lines 0 to 5\n"
    assert out.stat().st_size == size


def test_without_jinja2_the_command_says_what_to_install(
    refold: Refold, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an extra, and nothing is written."""
    run = stories.shelf(stories.plain(), runs, disk=Quick())
    for name in [name for name in sys.modules if name.startswith("runner._cli._render._page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("runner._cli._render._page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    refold("report", run, "-o", tmp_path / "page.html").ends(1, err="pip install 'refold[report]'")
    assert not (tmp_path / "page.html").exists()
