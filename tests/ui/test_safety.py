"""Nobody but who may gets in, and nothing that a page holds acts: each attack by itself, and the log as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

import runner
from runner import ui
from tests.support import stage
from tests.ui import scenes
from tests.ui.scenes import HOST, HOSTILE, SECRET, Person

TOKEN = "a-token-that-nobody-guesses"  # noqa: S105 (of these tests alone)
READ = (
    "/",
    "/inbox",
    "/runs/r",
    "/runs/r/events",
    "/runs/r/state?at=1",
    "/runs/r/log",
    "/runs/r/report",
    "/static/ui.js",
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory with a run that asks, and whose every text is hostile."""
    path = tmp_path / "runs"
    agent = scenes.paying(f"{HOSTILE} {SECRET}")
    stage.asked(runner.start_sync(agent, f"pay {HOSTILE}", runs=path, run="r", labels={"x": HOSTILE}))
    return path


@pytest.fixture
def untouched(runs: Path) -> object:
    """Whatever a test tries, the log is as it was."""
    before = stage.written(runs)
    yield
    assert stage.written(runs) == before


def browser(runs: Path, **options: object) -> TestClient:
    """A browser of somebody who has the token, if they have it."""
    given: dict[str, object] = {"token": TOKEN, "who": "ann", **options}
    return TestClient(ui.app(runs, **given), base_url=HOST, follow_redirects=False)  # type: ignore[arg-type] # as app takes them


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("path", READ)
@pytest.mark.parametrize("query", ["", "token=wrong", "token="])
def test_without_the_token_nothing_is_seen(runs: Path, path: str, query: str) -> None:
    """Not a page, not a script, and nothing of a run."""
    with browser(runs) as client:
        found = client.get(path + ("&" if "?" in path else "?") + query)
        posted = client.post("/runs/r/stop", data={"line": "3"})
    assert found.status_code == posted.status_code == 401
    assert HOSTILE not in found.text
    assert "set-cookie" not in found.headers


def test_the_token_becomes_a_cookie_and_leaves_the_address(runs: Path) -> None:
    """No page and no later request holds it; the cookie is for our own pages, and no script reads it."""
    with browser(runs) as client:
        found = client.get(f"/inbox?token={TOKEN}&x=1")
        assert (found.status_code, found.headers["location"]) == (303, "/inbox?x=1")
        cookie = found.headers["set-cookie"]
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
        assert TOKEN not in cookie
        page = client.get("/inbox")
        assert page.status_code == 200
        assert TOKEN not in page.text
    with browser(runs, token=TOKEN[::-1]) as other:
        other.cookies = client.cookies
        assert other.get("/inbox").status_code == 401


@pytest.mark.usefixtures("untouched")
@pytest.mark.fault("a web page that talks to a local service")
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_a_host_that_is_not_ours_reaches_nothing(runs: Path, host: str) -> None:
    """A name of somebody else may point here."""
    person = Person(runs)
    form = person.form("/inbox", "/runs/r/answer", "approve")
    assert "asks" not in person.see("/", 400, Host=host)
    person.send("/runs/r/answer", form, 400, Host=host)


@pytest.mark.usefixtures("untouched")
@pytest.mark.fault("a web page that talks to a local service")
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"{HOST}:81"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_foreign_site_that_posts_changes_nothing(runs: Path, headers: dict[str, str]) -> None:
    """Even with the right word."""
    person = Person(runs)
    form = person.form("/inbox", "/runs/r/answer", "approve")
    person.send("/runs/r/answer", form, 403, **headers)


@pytest.mark.usefixtures("untouched")
def test_a_form_without_its_word_or_with_another_persons_changes_nothing(runs: Path) -> None:
    """A word is made for one person and one console."""
    ann, bob = Person(runs, "ann"), Person(runs, "bob")
    form = ann.form("/inbox", "/runs/r/answer", "approve")
    for word in ("", "0" * 64, bob.form("/inbox", "/runs/r/answer", "approve")["csrf"]):
        ann.send("/runs/r/answer", form | {"csrf": word}, 403)
    ann.see("/runs/r/answer", 405)  # and nothing is changed by a GET


@pytest.mark.usefixtures("untouched")
def test_who_may_not_does_not(runs: Path) -> None:
    """`allow` is asked about everything, reading too; without a name nothing is changed, whatever it says."""
    nobody = Person(runs, None, allow=lambda *_: True)
    form = nobody.form("/inbox", "/runs/r/answer", "approve")
    nobody.send("/runs/r/answer", form, 403)
    looking = Person(runs, None)
    assert '<form method="post"' not in looking.see("/inbox") + looking.see("/runs/r")
    seen: list[tuple[str | None, str, str]] = []

    def allow(person: str | None, action: str, run: str) -> bool:
        seen.append((person, action, run))
        return False

    stranger = Person(runs, "eve", allow=allow)
    assert "/runs/r" not in stranger.see("/") + stranger.see("/inbox")
    for path in READ[2:-1]:
        stranger.see(path, 403)
    for action in ("answer", "park", "resume", "stop", "send", "fork"):
        stranger.send(f"/runs/r/{action}", {}, 403)
    assert {action for _, action, _ in seen} >= {"read", "download", "answer", "stop", "send", "fork", "park", "resume"}


@pytest.mark.usefixtures("untouched")
@pytest.mark.fault("a page that runs what it shows", "a secret on a page that others see")
def test_nothing_that_a_model_wrote_is_html_and_no_secret_is_shown(runs: Path) -> None:
    """On every page, and the browser is told to run nothing but ours."""
    person = Person(runs)
    person.client.post("/runs/r/answer", data={"csrf": "x"}, headers=person.origin)
    for path in ("/", "/inbox", "/runs/r", "/runs/r/state?at=3", "/runs/r/report", f"/?text={HOSTILE}"):
        found = person.client.get(path)
        assert found.status_code == 200
        for piece in ("<script>alert", "<img src=x"):
            assert piece not in found.text, path
        assert SECRET not in found.text, path
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert found.headers["cache-control"] == "no-store"
        assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.fault("a secret on a page that others see")
def test_a_secret_far_within_long_arguments_is_not_put_into_the_form_that_edits_them(tmp_path: Path) -> None:
    """The page shows their beginning alone, and the form would hold them all."""
    path = tmp_path / "runs"
    stage.asked(runner.start_sync(scenes.paying("long " * 10_000 + SECRET), "pay", runs=path, run="r"))
    for page in ("/inbox", "/runs/r"):
        assert SECRET not in Person(path).see(page)
