"""The tracker's answers: one issue for a key, and the faults that it was given."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from runner.triage import _tracker
from runner.triage._tracker_store import Draft, Issue, Store, stored
from runner.triage._world import TrackerFaults
from tests.triage.service import DRAFT, Service, posted


def test_a_repeat_under_the_same_key_gets_the_first_ones_issue(service: Service) -> None:
    """It is what makes a repeat harmless: 201 once, then 200 with the same content."""
    first, second = service.post(key="k"), service.post(key="k")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert len(stored(service.file, Issue)) == 1


def test_other_keys_and_no_key_make_other_issues(service: Service) -> None:
    """Content alone must not make two requests one: that would hide a duplicate that an agent made."""
    numbers = [service.post(key=key).json()["id"] for key in ("a", "b", None, None)]
    assert numbers == [1, 2, 3, 4]


def test_the_same_key_with_another_request_is_422(service: Service) -> None:
    """A key stands for one request: another under it is somebody's mistake, and files nothing."""
    service.post(key="k")
    assert service.post(DRAFT | {"body": "other"}, key="k").status_code == 422
    assert len(stored(service.file, Issue)) == 1


def test_the_same_key_in_flight_is_409_and_only_while_it_is(service: Service) -> None:
    """The second of two at once can't know the first one's outcome yet."""
    service.faults = TrackerFaults(delay=0.2)
    statuses = sorted(response.status_code for response in service.ask(posted(key="k"), posted(key="k")))
    assert statuses == [201, 409]
    assert service.post(key="k").status_code == 200


def test_what_is_in_flight_does_not_survive_a_restart(service: Service, tmp_path: Path) -> None:
    """A restarted service has forgotten its flights, not its keys: the repeat gets the committed issue."""
    service.faults = TrackerFaults(delay=30)

    async def restart_in_mid_flight() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url="http://127.0.0.1") as client:
            lost = asyncio.create_task(client.post("/issues", json=DRAFT, headers={"Idempotency-Key": "k"}))
            for _ in range(1000):
                await asyncio.sleep(0.01)
                if stored(service.file, Issue):
                    break
            with closing(Service(tmp_path)) as fresh:
                transport = httpx.ASGITransport(fresh.app)
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as other:
                    answer = await other.post("/issues", json=DRAFT, headers={"Idempotency-Key": "k"})
            lost.cancel()
            return answer

    assert asyncio.run(restart_in_mid_flight()).status_code == 200


@pytest.mark.parametrize(("seconds", "number"), [(59, 1), (61, 2)])
def test_a_key_is_forgotten_after_its_time(service: Service, seconds: float, number: int) -> None:
    """After that the key means a new request, whose issue keeps the key; the old one's row keeps it too."""
    service.faults = TrackerFaults(key_ttl=60)
    service.post(key="k")
    service.now += timedelta(seconds=seconds)
    assert service.post(key="k").json()["id"] == number
    assert [issue.key for issue in stored(service.file, Issue)] == ["k"] * number


def test_a_key_that_was_forgotten_is_remembered_anew(service: Service) -> None:
    """The second request under a forgotten key is the first of a new time."""
    service.faults = TrackerFaults(key_ttl=60)
    service.post(key="k")
    service.now += timedelta(seconds=61)
    assert [service.post(key="k").json()["id"] for _ in range(2)] == [2, 2]


def test_a_tracker_told_to_ignore_keys_files_every_request(service: Service) -> None:
    """A service without keys is what the ladder's second rung is for: the row still says what came with it."""
    service.faults = TrackerFaults(ignore_keys=True)
    assert [service.post(key="k").status_code for _ in range(2)] == [201, 201]
    assert [issue.key for issue in stored(service.file, Issue)] == ["k", "k"]


def test_the_lookup_finds_an_issue_by_its_key(service: Service) -> None:
    """What an agent asks after a crash."""
    service.post(key="k")
    assert [issue["id"] for issue in service.get("/issues", key="k").json()["issues"]] == [1]
    assert service.get("/issues", key="other").json() == {"issues": []}


def test_a_lookup_that_is_down_says_503_and_nothing_else_is_down(service: Service) -> None:
    """Only the question by key fails: reading and filing go on."""
    service.post(key="k")
    service.faults = TrackerFaults(lookup_down=True)
    assert service.get("/issues", key="k").status_code == 503
    assert len(service.get("/issues", text="crashes").json()["issues"]) == 1
    assert service.post(key="other").status_code == 201


@pytest.mark.parametrize(("text", "found"), [("INDEX", 1), ("done-after", 1), ("absent", 0), ("", 1), ("%", 0)])
def test_issues_are_found_by_text(service: Service, text: str, found: int) -> None:
    """In cause, title and body, whatever the case; a wildcard is a text like any other."""
    service.post()
    assert len(service.get("/issues", text=text).json()["issues"]) == found


@pytest.mark.parametrize("content", [{}, [], DRAFT | {"body": 1}, DRAFT | {"more": ""}, {"cause": "\ud83d"}, "text"])
def test_what_is_no_request_is_400(service: Service, content: object) -> None:
    """A request that can't be understood files nothing, and is not remembered under its key."""
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    bad = ("POST", "/issues", {"content": _json(content), "headers": headers})
    assert service.ask(bad)[0].status_code == 400
    assert service.post(key="k").status_code == 201


def test_a_request_of_two_megabytes_is_413(service: Service) -> None:
    """A limit on everything."""
    assert service.post(DRAFT | {"body": "x" * (2 << 20)}).status_code == 413


def test_a_save_that_fails_leaves_neither_the_issue_nor_the_key(service: Service) -> None:
    """Key and issue are one row: a failure must not leave half of them."""
    with closing(Store(service.file, lambda: service.now)) as other:
        other._db.execute("CREATE TRIGGER no AFTER INSERT ON issue BEGIN SELECT RAISE(ABORT, 'no'); END")  # noqa: SLF001 (the fault is put where only SQLite sees it)
    with pytest.raises(Exception, match="no"):
        service.store.file(Draft(**DRAFT), "k", 60)
    assert stored(service.file, Issue) == []


def test_every_commit_is_synced_with_its_directory(service: Service) -> None:
    """The file's promise is what the agent's key relies on after a power cut."""
    (level,) = service.store._db.execute("PRAGMA synchronous").fetchone()  # noqa: SLF001 (no public call shows it)
    assert level == 3


@pytest.mark.fault("a web page that talks to a local service")
@pytest.mark.parametrize(
    "headers",
    [
        *({"host": host} for host in ("evil.example", "127.0.0.1.evil.example:80", "[", "evil.example@127.0.0.1")),
        {"origin": "http://evil.example"},
    ],
)
def test_a_request_from_a_web_page_is_refused(service: Service, headers: dict[str, str]) -> None:
    """A name that was pointed at this machine, or a form on somebody's page, files nothing."""
    for method, path, more in (posted(), ("GET", "/issues", {})):
        assert service.ask((method, path, more | {"headers": headers}))[0].status_code == 403
    assert stored(service.file, Issue) == []


def test_a_number_that_no_store_holds_is_no_issue(service: Service) -> None:
    """And no error of the tracker's."""
    for path in (f"/issues/{10**30}", f"/issues/{10**30}/comments"):
        assert service.ask(("GET", path, {}))[0].status_code == 404


def test_no_answer_is_made_in_a_thread(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep has a time of its own, which a thread would not share: its scenarios would not repeat exactly."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something ran in a thread")

    monkeypatch.setattr("anyio.to_thread.run_sync", refuse)
    answers = (service.post(), service.get("/issues"), service.note(issue=7), service.get(f"/issues/{10**30}/comments"))
    assert [answer.status_code for answer in answers] == [201, 200, 404, 404]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_another_content_type_is_refused(service: Service, kind: str) -> None:
    """A browser sends these without asking the service first."""
    sent = ("POST", "/issues", {"content": _json(DRAFT), "headers": {"Content-Type": kind}})
    assert service.ask(sent)[0].status_code == 415
    assert stored(service.file, Issue) == []


@pytest.mark.fault("a request that never ends")
def test_a_body_that_does_not_arrive_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep the tracker busy for ever."""
    monkeypatch.setattr(_tracker, "_BODY_SECONDS", 0.05)

    async def drops() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    headers = {"Content-Type": "application/json"}
    assert service.ask(("POST", "/issues", {"content": drops(), "headers": headers}))[0].status_code == 408


def _json(content: object) -> bytes:
    return json.dumps(content).encode()
