"""The tracker's comments: the same promises as for issues, in a table of their own."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runner.triage._tracker_store import Comment, Draft, Issue, Remark, Store, stored
from runner.triage._world import TrackerFaults
from tests.triage.service import DRAFT, REMARK, Service


def test_a_comment_is_made_once_for_a_key(service: Service) -> None:
    """The same promise as for an issue, in a table of its own."""
    service.post()
    first, second, other = service.note(key="k"), service.note(key="k"), service.note(key="other")
    assert [response.status_code for response in (first, second, other)] == [201, 200, 201]
    assert first.json() == second.json()
    assert [(comment.issue, comment.key, comment.text) for comment in stored(service.file, Comment)] == [
        (1, "k", REMARK["text"]),
        (1, "other", REMARK["text"]),
    ]
    assert len(stored(service.file, Issue)) == 1


def test_a_key_stands_for_one_request_of_either_kind(service: Service) -> None:
    """Another text, another issue, or filing an issue under it is somebody's mistake, and makes nothing."""
    service.post()
    service.post()
    service.note(key="k")
    wrong = [service.note({"text": "more"}, "k"), service.note(key="k", issue=2), service.post(key="k")]
    assert [response.status_code for response in wrong] == [422] * 3
    assert (len(stored(service.file, Comment)), len(stored(service.file, Issue))) == (1, 2)


def test_a_comment_on_no_issue_is_404(service: Service) -> None:
    """And its key is as good as new."""
    assert service.note(key="k").status_code == 404
    service.post()
    assert service.note(key="k").status_code == 201


@pytest.mark.parametrize("faults", [TrackerFaults(ignore_keys=True), TrackerFaults(key_ttl=60)])
def test_faults_are_the_same_for_comments(service: Service, faults: TrackerFaults) -> None:
    """A key that is ignored or forgotten makes a second comment, and the rows say so."""
    service.post()
    service.faults = faults
    service.note(key="k")
    service.now += timedelta(seconds=61)
    assert service.note(key="k").json()["id"] == 2
    assert [comment.key for comment in stored(service.file, Comment)] == ["k", "k"]


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
    service.faults = TrackerFaults(lookup_down=True)
    assert service.get("/issues/1/comments", key="b").status_code == 503
    assert service.get("/issues/1/comments").status_code == 200


@pytest.mark.parametrize("content", [{}, {"text": 1}, REMARK | {"more": ""}, DRAFT])
def test_what_is_no_comment_is_400(service: Service, content: object) -> None:
    """As for an issue."""
    service.post()
    assert service.note(content, "k").status_code == 400
    assert stored(service.file, Comment) == []


def test_a_file_from_before_there_were_comments_has_none(tmp_path: Path) -> None:
    """Nor has one that was never used; a tracker that opens it makes room for them."""
    file = tmp_path / "tracker.sqlite"
    assert stored(file, Comment) == []
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE issue (id INTEGER PRIMARY KEY AUTOINCREMENT, key, cause, title, body, created)")
    assert stored(file, Comment) == []
    with closing(Store(file, lambda: datetime(2026, 11, 29, tzinfo=UTC))) as store:
        store.file(Draft(**DRAFT), "k", 60)
        store.comment(1, Remark(**REMARK), None, 60)
    assert len(stored(file, Comment)) == 1
