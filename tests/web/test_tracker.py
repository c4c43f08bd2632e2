"""The hook and the classifier against the triage job's real tracker: keys expired, ignored, mismatched, in flight."""

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import eventlog
import runner
import runner.testing
import runner.web
from replay.events import AttemptEnded
from runner import triage
from tests.support import stage
from tests.triage.worlds import end_trackers
from tests.web.clients import PLAIN

DRAFT = {"cause": "c", "title": "t", "body": "b"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A world with a running tracker."""
    path = tmp_path_factory.mktemp("tracker")
    asyncio.run(triage.tracker(path))
    yield path
    end_trackers(path)


@pytest.fixture
def run(world: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run's id that no test before has used: the tracker remembers its keys."""
    name = f"run-{_issues(world)[1]}"
    monkeypatch.setattr(eventlog.Disk, "random", lambda _disk, size: _uid(name)[: 2 * size])
    return name


def _uid(run: str) -> str:
    return run.encode().hex().ljust(32, "0")


def _issues(world: Path, key: str | None = None) -> tuple[list[str], int]:
    """The titles that came under a key, and how many issues there are."""
    with closing(sqlite3.connect(world / "tracker.sqlite")) as db:
        titles = [title for (title,) in db.execute("SELECT title FROM issue WHERE key = ?", (key,))]
        return titles, db.execute("SELECT count(*) FROM issue").fetchone()[0]


def _post(world: Path, draft: dict[str, str], key: str | None = None, timeout: float = 10.0) -> httpx.Response:
    url = asyncio.run(triage.tracker(world))
    hooks: dict[str, list[Any]] = {"request": [runner.web.key_hook] if key is None else []}
    headers = {"Idempotency-Key": key} if key is not None else {}
    with httpx.Client(base_url=url, timeout=timeout, event_hooks=hooks, **PLAIN) as client:
        return client.post("/issues", json=draft, headers=headers)


def _file(world: Path, draft: dict[str, str], *, keeps: float = 3600, lose: int = 0, attempts: int = 3) -> runner.Tool:
    """The tool of these tests. It loses the answers of its first `lose` attempts: it stops waiting too soon."""

    @runner.tool(name="act", effect="keyed", key_ttl=timedelta(seconds=keeps), timeout=20, attempts=attempts)
    def file(call: runner.Call) -> Any:
        with runner.web.sending():
            answer = runner.web.result(_post(world, draft))
        if call.n <= lose:
            raise TimeoutError
        return answer

    return file


def _go(run: str, runs: Path, act: runner.Tool, clock: stage.Ticking) -> Any:
    return stage.start([runner.testing.tool_calls(("act", {})), "done"], act, runs=runs, run=run, clock=clock)


def _errors(run: str, runs: Path) -> list[tuple[str, float | None]]:
    return [(e.did, e.retry_after) for e in stage.events(runs, AttemptEnded, run)]


def test_an_answer_that_was_lost_is_given_again_under_the_same_key(world: Path, run: str, tmp_path: Path) -> None:
    """Two attempts, one issue: the second is answered with the first one's."""
    triage.set_tracker_faults(world, triage.TrackerFaults())
    assert stage.finished(_go(run, tmp_path, _file(world, DRAFT, lose=1), stage.Ticking())) == "done"
    assert _issues(world, runner.key(_uid(run), "1.0"))[0] == ["t"]
    assert _errors(run, tmp_path) == [("unknown", None)]


def test_a_key_that_may_have_expired_is_not_sent_again(world: Path, run: str, tmp_path: Path) -> None:
    """The tracker would file it twice; its age counts from the first marker, so a person is asked."""
    triage.set_tracker_faults(world, triage.TrackerFaults(key_ttl=60))
    act = _file(world, DRAFT, keeps=60, lose=3)
    clock = stage.Ticking()
    asked = stage.asked(_go(run, tmp_path, act, clock))
    assert [question.kind for question in asked] == ["settle"]
    assert len(_issues(world, runner.key(_uid(run), "1.0"))[0]) == 1
    assert sum(clock.slept) <= 40  # a fourth attempt at 20 s each could outlive the key


def test_a_tracker_that_ignores_keys_files_twice_where_a_tool_says_keyed(world: Path, run: str, tmp_path: Path) -> None:
    """The declaration is a statement about the service; a wrong one costs this, hence the default."""
    triage.set_tracker_faults(world, triage.TrackerFaults(ignore_keys=True))
    assert stage.finished(_go(run, tmp_path, _file(world, DRAFT, lose=1), stage.Ticking())) == "done"
    assert _issues(world, runner.key(_uid(run), "1.0"))[0] == ["t", "t"]


def test_a_tracker_that_ignores_keys_is_no_trouble_for_a_once_tool(world: Path, run: str, tmp_path: Path) -> None:
    """The lookup finds what the lost answer left: the recipe for services without keys."""
    triage.set_tracker_faults(world, triage.TrackerFaults(ignore_keys=True))

    @runner.tool(name="act", effect="non_idempotent")
    def act(call: runner.Call) -> Any:
        with runner.web.sending():
            runner.web.result(_post(world, DRAFT | {"body": f"marker {call.key}"}))
        raise TimeoutError

    @act.lookup(visible_within=0)
    def find(call: runner.Call) -> runner.Found | runner.Missing:
        with runner.web.sending(), httpx.Client(base_url=asyncio.run(triage.tracker(world)), **PLAIN) as client:
            found = runner.web.result(client.get("/issues", params={"text": f"marker {call.key}"}))["issues"]
        return runner.Found(found[0]["id"]) if found else runner.Missing()

    assert stage.finished(_go(run, tmp_path, act, stage.Ticking())) == "done"
    assert stage.results(tmp_path, run)["1.0"].how == "found"
    assert _issues(world, runner.key(_uid(run), "1.0"))[0] == ["t"]


def test_a_key_that_came_with_another_request_leaves_the_call_open(world: Path, run: str, tmp_path: Path) -> None:
    """Something happened under this call's key that the log does not know: a person looks."""
    triage.set_tracker_faults(world, triage.TrackerFaults())
    assert _post(world, DRAFT | {"title": "a stranger's"}, key=runner.key(_uid(run), "1.0")).status_code == 201
    asked = stage.asked(_go(run, tmp_path, _file(world, DRAFT), stage.Ticking()))
    assert [question.kind for question in asked] == ["settle"]
    assert _errors(run, tmp_path) == [("unknown", None)] * 3
    assert _issues(world, runner.key(_uid(run), "1.0"))[0] == ["a stranger's"]


def test_a_key_that_is_in_flight_is_waited_for_and_sent_again(world: Path, run: str, tmp_path: Path) -> None:
    """The first request is still under way when the second comes: 409, a wait, then the first one's issue."""
    triage.set_tracker_faults(world, triage.TrackerFaults(delay=1.5))
    key = runner.key(_uid(run), "1.0")

    class Waiting(stage.Ticking):
        async def sleep(self, seconds: float) -> None:
            """A wait of the log's time lasts until the request in flight has its answer."""
            await asyncio.to_thread(first.result)
            await super().sleep(seconds)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_post, world, DRAFT, key)
        while not _issues(world, key)[0]:
            assert not first.done()
        result = _go(run, tmp_path, _file(world, DRAFT), Waiting())
        assert first.result().status_code == 201
    triage.set_tracker_faults(world, triage.TrackerFaults())
    assert stage.finished(result) == "done"
    assert _errors(run, tmp_path) == [("unknown", 1.0)]
    assert _issues(world, key)[0] == ["t"]


def test_a_refusal_goes_to_the_model_at_once(world: Path, run: str, tmp_path: Path) -> None:
    """A request that the tracker can't read did nothing, and a second would not either."""
    triage.set_tracker_faults(world, triage.TrackerFaults())
    assert stage.finished(_go(run, tmp_path, _file(world, {"cause": "c"}), stage.Ticking())) == "done"
    assert _errors(run, tmp_path) == [("nothing", None)]
    assert stage.results(tmp_path, run)["1.0"].text.startswith("The call failed: the service said 400: ")
