"""The issue tools: what each answer of the tracker proves, and a declaration that tells the truth about the service."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import AttemptEnded, AttemptMarked, ResultRecorded, WaitUntil
from runner import triage
from runner.triage import _issue_tools, _tracker_process
from runner.triage._tracker_store import Comment, Issue, stored
from tests.support import stage

DRAFT = {"cause": "c", "title": "t", "body": "b"}
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def play(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[replay.State, list[replay.AnyEvent]]:
    """A run that makes these calls one after another in the world at `folder`/world, and its events."""
    world = folder / "world"
    world.mkdir(exist_ok=True)
    model = runner.testing.ScriptedModel([*(runner.testing.tool_calls(call) for call in calls), "done"])
    agent = runner.Agent(name="agent", model=model, tools=_issue_tools.tools(world), approve="off")
    result = await runner.start(agent, "t", runs=folder / "runs", clock=stage.Ticking())
    lines = eventlog.store(folder / "runs").read(result.run).lines
    return result.state, [replay.decode(raw) for line in lines for raw in line.events]


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """A server that reads the request and closes the connection."""
    await reader.readuntil(b"\r\n\r\n")


def test_an_attempt_that_failed_before_it_was_sent_is_made_again_under_the_same_key(tmp_path: Path) -> None:
    """A tracker that was gone is started again; the second attempt carries the first one's key."""
    real = _tracker_process.url
    asked: list[Path] = []

    async def gone_once(world: Path) -> str:
        asked.append(world)
        return "http://127.0.0.1:9" if len(asked) == 1 else await real(world)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tracker_process, "url", gone_once)
        state, events = asyncio.run(play(tmp_path, ("issue_file", DRAFT)))
    marked = [event for event in events if isinstance(event, AttemptMarked)]
    assert [event.n for event in marked] == [1, 2]
    assert {event.key for event in marked} == {
        issue.key for issue in stored(tmp_path / "world" / "tracker.sqlite", Issue)
    }
    assert state.answer == "done"


def test_a_tracker_that_can_not_be_started_did_nothing_for_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was sent, so the call has failed and is not left open for a person."""

    async def down(world: Path) -> str:
        raise triage.TrackerDown(str(world))

    monkeypatch.setattr(_tracker_process, "url", down)
    state, events = asyncio.run(play(tmp_path, ("issue_file", DRAFT)))
    assert {event.did for event in events if isinstance(event, AttemptEnded)} == {"nothing"}
    assert state.phase == "done"


def test_an_issue_is_filed_found_and_not_filed_again(tmp_path: Path) -> None:
    """The second filing of a cause is refused with the first one's number, whatever its words."""
    again = DRAFT | {"title": "other words"}
    state, events = asyncio.run(
        play(
            tmp_path,
            ("issue_search", {"text": "t"}),
            ("issue_file", DRAFT),
            ("issue_search", {"text": "T"}),
            ("issue_file", again),
        )
    )
    results = [event for event in events if isinstance(event, ResultRecorded)]
    assert [json.loads(result.text) for result in results[:3]] == [
        [],
        {"issue": 1, "cause": "c"},
        [{"issue": 1, "cause": "c", "title": "t"}],
    ]
    assert (results[3].how, results[3].first) == ("refused", "2.0")
    assert len(stored(tmp_path / "world" / "tracker.sqlite", Issue)) == 1
    assert state.answer == "done"


@pytest.mark.parametrize(
    ("faults", "effect", "key_ttl"),
    [
        (triage.TrackerFaults(), "keyed", 86_400.0),
        (triage.TrackerFaults(key_ttl=60), "keyed", 60.0),
        (triage.TrackerFaults(key_ttl=30), "non_idempotent", None),
        (triage.TrackerFaults(ignore_keys=True), "non_idempotent", None),
        (triage.TrackerFaults(lookup_down=True), "keyed", 86_400.0),
    ],
)
def test_the_effect_is_what_the_service_promises(
    tmp_path: Path, faults: triage.TrackerFaults, effect: str, key_ttl: float | None
) -> None:
    """To call a tool keyed whose service ignores keys, or forgets them before an attempt ends, files an issue twice."""
    triage.set_tracker_faults(tmp_path, faults)
    tools = {tool.name: tool for tool in _issue_tools.tools(tmp_path)}
    for name in ("issue_file", "issue_comment"):
        assert (tools[name].effect, tools[name].key_ttl) == (effect, key_ttl)


def test_a_tracker_without_keys_whose_reply_was_lost_is_asked_before_anything_is_repeated(tmp_path: Path) -> None:
    """The second rung: the issue is found by the key in its row, and there is one of it."""
    world = tmp_path / "world"
    triage.set_tracker_faults(world, triage.TrackerFaults(ignore_keys=True, delay=60))

    async def lose_the_reply() -> tuple[replay.State, list[replay.AnyEvent]]:
        await triage.tracker(world)  # to begin takes longer than an answer may here
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_issue_tools, "TIMEOUT", 2.5)
            return await play(tmp_path, ("issue_file", DRAFT))

    state, events = asyncio.run(lose_the_reply())
    assert [event.how for event in events if isinstance(event, ResultRecorded)] == ["found"]
    assert len(stored(world / "tracker.sqlite", Issue)) == 1
    assert not state.in_doubt


def test_a_comment_whose_reply_was_lost_is_found_by_its_key(tmp_path: Path) -> None:
    """The same rung for comments, among the comments of its issue; one on no issue has failed and is not open."""
    world = tmp_path / "world"
    triage.set_tracker_faults(world, triage.TrackerFaults(ignore_keys=True, delay=60))
    noted = ("issue_comment", {"issue": 1, "text": "the fix is in"})

    async def lose_the_replies() -> tuple[replay.State, list[replay.AnyEvent]]:
        await triage.tracker(world)  # to begin takes longer than an answer may here
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_issue_tools, "TIMEOUT", 2.5)
            return await play(tmp_path, ("issue_comment", {"issue": 7, "text": "x"}), ("issue_file", DRAFT), noted)

    state, events = asyncio.run(lose_the_replies())
    results = [event for event in events if isinstance(event, ResultRecorded)]
    assert [result.how for result in results] == ["failed", "found", "found"]
    assert json.loads(results[2].text) == {"issue": 1, "comment": 1}
    assert [comment.key for comment in stored(world / "tracker.sqlite", Comment)] == [runner.key(state.uid, "3.0")]
    assert not state.in_doubt


def test_a_request_that_such_a_tracker_never_got_is_made_again_once_it_must_have_landed(tmp_path: Path) -> None:
    """Missing is believed only after the time in which it could still have arrived; then it is filed, once."""
    world = tmp_path / "world"
    triage.set_tracker_faults(world, triage.TrackerFaults(ignore_keys=True))
    real = _tracker_process.url
    asked: list[Path] = []

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await silent(reader, writer)
        writer.close()

    async def played() -> list[replay.AnyEvent]:
        server = await asyncio.start_server(closing, "127.0.0.1", 0)
        deaf = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def deaf_once(world: Path) -> str:
            asked.append(world)
            return deaf if len(asked) == 1 else await real(world)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_tracker_process, "url", deaf_once)
            try:
                return (await play(tmp_path, ("issue_file", DRAFT)))[1]
            finally:
                server.close()

    events = asyncio.run(played())
    assert [e.why for e in events if isinstance(e, WaitUntil)] == ["visible"]
    assert [e.how for e in events if isinstance(e, ResultRecorded)] == ["ran"]
    assert len(stored(world / "tracker.sqlite", Issue)) == 1
