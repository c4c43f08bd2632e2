"""The tracker's answers: one issue for a key, and bad manners where it was told to have them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from runner.triage._manners import Manners
from runner.triage._tracker import Idle, Tracker
from runner.triage._tracker_store import Draft, Remark, Store, comments, issues

DRAFT = {"cause": "done-after-delete", "title": "it crashes", "body": "IndexError"}
REMARK = {"text": "the fix is in"}


class Service:
    """A tracker in this process, over a real file, with a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = datetime(2026, 11, 29, tzinfo=UTC)
        self.seconds = 0.0
        self.manners = Manners()
        self.file = folder / "tracker.sqlite"
        self.store = Store(self.file, lambda: self.now)
        self.idle = Idle(120, lambda: self.seconds)
        self.app = Tracker(self.store, lambda: self.manners, self.idle, "token")

    def ask(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send these at the same time."""

        async def all_of_them() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://tracker") as client:
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


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A tracker with good manners and no issues."""
    return Service(tmp_path)


def test_a_repeat_under_the_same_key_gets_the_first_ones_issue(service: Service) -> None:
    """It is what makes a repeat harmless: 201 once, then 200 with the same content."""
    first, second = service.post(key="k"), service.post(key="k")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert len(issues(service.file)) == 1


def test_other_keys_and_no_key_make_other_issues(service: Service) -> None:
    """Content alone must not make two requests one: that would hide a duplicate that an agent made."""
    numbers = [service.post(key=key).json()["id"] for key in ("a", "b", None, None)]
    assert numbers == [1, 2, 3, 4]


def test_the_same_key_with_another_request_is_422(service: Service) -> None:
    """A key stands for one request: another under it is somebody's mistake, and files nothing."""
    service.post(key="k")
    assert service.post(DRAFT | {"body": "other"}, key="k").status_code == 422
    assert len(issues(service.file)) == 1


def test_the_same_key_in_flight_is_409_and_only_while_it_is(service: Service) -> None:
    """The second of two at once can't know the first one's outcome yet."""
    service.manners = Manners(delay=0.2)
    statuses = sorted(response.status_code for response in service.ask(posted(key="k"), posted(key="k")))
    assert statuses == [201, 409]
    assert service.post(key="k").status_code == 200


def test_what_is_in_flight_does_not_survive_a_restart(service: Service, tmp_path: Path) -> None:
    """A restarted service has forgotten its flights, not its keys: the repeat gets the committed issue."""
    service.manners = Manners(delay=30)

    async def restart_in_mid_flight() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url="http://t") as client:
            lost = asyncio.create_task(client.post("/issues", json=DRAFT, headers={"Idempotency-Key": "k"}))
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if issues(service.file):
                    break
            fresh = Service(tmp_path)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(fresh.app), base_url="http://t") as other:
                answer = await other.post("/issues", json=DRAFT, headers={"Idempotency-Key": "k"})
            lost.cancel()
            return answer

    assert asyncio.run(restart_in_mid_flight()).status_code == 200


@pytest.mark.parametrize(("seconds", "number"), [(59, 1), (61, 2)])
def test_a_key_is_forgotten_after_its_time(service: Service, seconds: float, number: int) -> None:
    """After that the key means a new request, whose issue keeps the key; the old one's row keeps it too."""
    service.manners = Manners(key_ttl=60)
    service.post(key="k")
    service.now += timedelta(seconds=seconds)
    assert service.post(key="k").json()["id"] == number
    assert [issue.key for issue in issues(service.file)] == ["k"] * number


def test_a_key_that_was_forgotten_is_remembered_anew(service: Service) -> None:
    """The second request under a forgotten key is the first of a new time."""
    service.manners = Manners(key_ttl=60)
    service.post(key="k")
    service.now += timedelta(seconds=61)
    assert [service.post(key="k").json()["id"] for _ in range(2)] == [2, 2]


def test_a_tracker_told_to_ignore_keys_files_every_request(service: Service) -> None:
    """A service without keys is what the ladder's second rung is for: the row still says what came with it."""
    service.manners = Manners(ignore_keys=True)
    assert [service.post(key="k").status_code for _ in range(2)] == [201, 201]
    assert [issue.key for issue in issues(service.file)] == ["k", "k"]


def test_the_lookup_finds_an_issue_by_its_key(service: Service) -> None:
    """What an agent asks after a crash."""
    service.post(key="k")
    assert [issue["id"] for issue in service.get("/issues", key="k").json()["issues"]] == [1]
    assert service.get("/issues", key="other").json() == {"issues": []}


def test_a_lookup_that_is_down_says_503_and_nothing_else_is_down(service: Service) -> None:
    """Only the question by key fails: reading and filing go on."""
    service.post(key="k")
    service.manners = Manners(lookup_down=True)
    assert service.get("/issues", key="k").status_code == 503
    assert len(service.get("/issues", text="crashes").json()["issues"]) == 1
    assert service.post(key="other").status_code == 201


@pytest.mark.parametrize(("text", "found"), [("INDEX", 1), ("done-after", 1), ("absent", 0), ("", 1), ("%", 0)])
def test_issues_are_found_by_text(service: Service, text: str, found: int) -> None:
    """In cause, title and body, whatever the case; a wildcard is a text like any other."""
    service.post()
    assert len(service.get("/issues", text=text).json()["issues"]) == found


def test_one_issue_is_found_by_its_number(service: Service) -> None:
    """And another is not."""
    service.post()
    assert service.get("/issues/1").json()["title"] == "it crashes"
    assert service.get("/issues/2").status_code == 404


def test_a_comment_is_made_once_for_a_key(service: Service) -> None:
    """The same promise as for an issue, in a table of its own."""
    service.post()
    first, second, other = service.note(key="k"), service.note(key="k"), service.note(key="other")
    assert [response.status_code for response in (first, second, other)] == [201, 200, 201]
    assert first.json() == second.json()
    assert [(comment.issue, comment.key, comment.text) for comment in comments(service.file)] == [
        (1, "k", REMARK["text"]),
        (1, "other", REMARK["text"]),
    ]
    assert len(issues(service.file)) == 1


def test_a_key_stands_for_one_request_of_either_kind(service: Service) -> None:
    """Another text, another issue, or filing an issue under it is somebody's mistake, and makes nothing."""
    service.post()
    service.post()
    service.note(key="k")
    wrong = [service.note({"text": "more"}, "k"), service.note(key="k", issue=2), service.post(key="k")]
    assert [response.status_code for response in wrong] == [422] * 3
    assert (len(comments(service.file)), len(issues(service.file))) == (1, 2)


def test_a_comment_on_no_issue_is_404(service: Service) -> None:
    """And its key is as good as new."""
    assert service.note(key="k").status_code == 404
    service.post()
    assert service.note(key="k").status_code == 201


@pytest.mark.parametrize("manners", [Manners(ignore_keys=True), Manners(key_ttl=60)])
def test_bad_manners_are_the_same_for_comments(service: Service, manners: Manners) -> None:
    """A key that is ignored or forgotten makes a second comment, and the rows say so."""
    service.post()
    service.manners = manners
    service.note(key="k")
    service.now += timedelta(seconds=61)
    assert service.note(key="k").json()["id"] == 2
    assert [comment.key for comment in comments(service.file)] == ["k", "k"]


def test_comments_are_found_by_their_issue_and_key(service: Service) -> None:
    """What an agent asks after a crash, and what it hears when the lookup is down."""
    for _ in range(2):
        service.post()
    for key, issue in (("a", 1), ("b", 1), ("a2", 2)):
        service.note(key=key, issue=issue)
    found = service.get("/issues/1/comments").json()["comments"]
    assert [comment["key"] for comment in found] == ["a", "b"]
    assert [c["id"] for c in service.get("/issues/1/comments", key="b").json()["comments"]] == [2]
    assert service.get("/issues/1/comments", key="a2").json() == {"comments": []}
    service.manners = Manners(lookup_down=True)
    assert service.get("/issues/1/comments", key="b").status_code == 503
    assert service.get("/issues/1/comments").status_code == 200


@pytest.mark.parametrize("content", [{}, {"text": 1}, REMARK | {"more": ""}, DRAFT])
def test_what_is_no_comment_is_400(service: Service, content: object) -> None:
    """As for an issue."""
    service.post()
    assert service.note(content, "k").status_code == 400
    assert comments(service.file) == []


def test_a_file_from_before_there_were_comments_has_none(tmp_path: Path) -> None:
    """Nor has one that was never used; a tracker that opens it makes room for them."""
    file = tmp_path / "tracker.sqlite"
    assert comments(file) == []
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE issue (id INTEGER PRIMARY KEY AUTOINCREMENT, key, cause, title, body, created)")
    assert comments(file) == []
    with closing(Store(file, lambda: datetime(2026, 11, 29, tzinfo=UTC))) as store:
        store.file(Draft(**DRAFT), "k", 60)
        store.comment(1, Remark(**REMARK), None, 60)
    assert len(comments(file)) == 1


@pytest.mark.parametrize("content", [{}, [], DRAFT | {"body": 1}, DRAFT | {"more": ""}, {"cause": "\ud83d"}, "text"])
def test_what_is_no_request_is_400(service: Service, content: object) -> None:
    """A request that can't be understood files nothing, and is not remembered under its key."""
    bad = ("POST", "/issues", {"content": _json(content), "headers": {"Idempotency-Key": "k"}})
    assert service.ask(bad)[0].status_code == 400
    assert service.post(key="k").status_code == 201


def test_a_request_of_two_megabytes_is_413(service: Service) -> None:
    """A limit on everything."""
    assert service.post(DRAFT | {"body": "x" * (2 << 20)}).status_code == 413


def test_a_save_that_fails_leaves_neither_the_issue_nor_the_key(service: Service) -> None:
    """Key and issue are one transaction: a failure between the two must not leave half of them."""
    with closing(Store(service.file, lambda: service.now)) as other:
        other._db.execute("CREATE TRIGGER no BEFORE INSERT ON remembered BEGIN SELECT RAISE(ABORT, 'no'); END")  # noqa: SLF001 (the fault is put where only SQLite sees it)
    with pytest.raises(Exception, match="no"):
        service.store.file(Draft(**DRAFT), "k", 60)
    assert issues(service.file) == []


def test_every_commit_is_synced_with_its_directory(service: Service) -> None:
    """The file's promise is what the agent's key relies on after a power cut."""
    (level,) = service.store._db.execute("PRAGMA synchronous").fetchone()  # noqa: SLF001 (no public call shows it)
    assert level == 3


def test_a_tracker_is_idle_only_when_nobody_has_asked_for_that_long(service: Service) -> None:
    """Each request starts the time anew, and one that is being answered counts as one that asks."""
    service.seconds = 119
    service.get("/health")
    service.seconds = 238
    assert not service.idle.over()
    with service.idle:
        service.seconds = 1000
        assert not service.idle.over()
    service.seconds = 1119.9
    assert not service.idle.over()
    service.seconds = 1120
    assert service.idle.over()


def test_its_health_says_which_process_it_is(service: Service) -> None:
    """A stranger who got its port must not pass for it."""
    assert service.get("/health").json() == {"token": "token"}


def _json(content: object) -> bytes:
    return json.dumps(content).encode()
