"""Nothing begins for a run that is no longer this process's: the check comes last, after the save that meant it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import eventlog
import replay
import runner
import runner.testing
import runner.web
from eventlog._file_log import FileLog
from replay.events import AttemptEnded, AttemptMarked, LookupAsked, ModelAsked, ResultRecorded
from tests.support import stage

ACT = [runner.testing.tool_calls(("act", {})), "over"]
Watch = Callable[[replay.State, Sequence[replay.Event]], None]


def loses(runs: Path) -> None:
    """Take the lock's name away, as a lease ends: from here on the holder is none."""
    (runs / "r" / "lock").unlink()


def loses_after(runs: Path, kind: type[replay.Event]) -> Watch:
    """A watcher that has the run lost once an event of a kind is saved."""

    def watch(_state: replay.State, events: Sequence[replay.Event]) -> None:
        if any(isinstance(event, kind) for event in events):
            loses(runs)

    return watch


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_body_does_not_begin_once_the_run_is_lost(runs: Path, kind: str) -> None:
    """The marker is on the disk, and the call has no outcome: the next life holds it in doubt."""
    did: list[str] = []

    def act() -> str:
        did.append("act")
        return "acted"

    async def act_in_loop() -> str:
        return act()

    tool = runner.tool(name="act")(act_in_loop if kind == "async" else act)
    with pytest.raises(eventlog.LockLost):
        stage.start(ACT, tool, runs=runs, watch=loses_after(runs, AttemptMarked))
    assert did == []
    assert stage.events(runs, AttemptMarked)
    assert not stage.events(runs, AttemptEnded) + stage.events(runs, ResultRecorded)
    assert runner.read_state("r", runs).in_doubt


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(("frozen", "times"), [(22, 2), (30, 1)])
def test_a_repeat_does_not_begin_with_a_key_that_was_forgotten_while_it_was_frozen(
    runs: Path, kind: str, frozen: int, times: int
) -> None:
    """Between its marker and its body, as a laptop that was closed: the service would take it for another request."""
    did: list[str] = []
    clock = stage.Ticking()

    def act() -> str:
        did.append(runner.current_call().key)
        raise runner.OutcomeUnknown("the line went dead")

    async def act_in_loop() -> str:
        return act()

    def freezes(_state: replay.State, events: Sequence[replay.Event]) -> None:
        if any(isinstance(event, AttemptMarked) and event.n == 2 for event in events):
            clock.at += timedelta(hours=frozen)

    keyed = runner.tool(name="act", effect="keyed", key_ttl=timedelta(hours=24), attempts=2)
    tool = keyed(act_in_loop if kind == "async" else act)
    (asked,) = stage.asked(stage.start(ACT, tool, runs=runs, clock=clock, watch=freezes))
    assert (asked.kind, len(did)) == ("settle", times)


@pytest.mark.fault("lease lost")
def test_the_model_is_not_asked_once_the_run_is_lost(runs: Path) -> None:
    """An ask costs money, and another process asks it, too."""
    asked: list[str] = []

    def says(_request: runner.Request) -> str:
        asked.append("ask")
        return "over"

    with pytest.raises(eventlog.LockLost):
        stage.start([says], runs=runs, clock=stage.Ticking(), watch=loses_after(runs, ModelAsked))
    assert asked == []


@pytest.mark.fault("lease lost")
def test_a_tool_may_ask_by_itself_directly_before_its_effect(runs: Path) -> None:
    """What `holding` raises ends the attempt without an outcome, also where the tool would not let it through."""
    did: list[str] = []

    @runner.tool
    def act(call: runner.Call) -> str:
        call.holding()
        call.holding(3600.0)
        loses(runs)
        call.holding()
        did.append("act")
        return "acted"

    with pytest.raises(eventlog.LockLost):
        stage.start(ACT, act, runs=runs)
    assert did == []
    assert not stage.events(runs, AttemptEnded) + stage.events(runs, ResultRecorded)


@pytest.mark.fault("lease lost")
def test_a_lock_that_another_run_lost_is_an_error_like_any_other(runs: Path) -> None:
    """A tool may carry runs of its own."""

    @runner.tool
    def act() -> str:
        raise eventlog.LockLost("another")

    assert stage.asked(stage.start(ACT, act, runs=runs))
    assert [ended.did for ended in stage.events(runs, AttemptEnded)] == ["unknown"]


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_request_does_not_go_once_the_run_is_lost(runs: Path, method: str) -> None:
    """The hook asks last, with or without a key to send."""
    seen: list[str] = []

    def service(request: httpx.Request) -> httpx.Response:
        seen.append(request.method)
        return httpx.Response(200)

    @runner.tool
    def act() -> object:
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [runner.web.key_hook]}
        with httpx.Client(transport=httpx.MockTransport(service), event_hooks=hooks) as client:
            loses(runs)
            client.get("http://service/look")
            with runner.web.sending():
                return runner.web.result(client.request(method, "http://service/act"))

    with pytest.raises(eventlog.LockLost):
        stage.start(ACT, act, runs=runs)
    assert seen == ["GET"]
    assert not stage.events(runs, AttemptEnded)


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize(
    ("left", "waits"),
    [(float("inf"), (60.0, 60.0, 60.0)), (29.0, (3.0, 3.0, 3.0)), (31.0, (10.0, 10.0, 10.0)), (1.0, (0.3, 0.3, 0.3))],
)
def test_a_client_waits_no_longer_than_the_lease_lasts(
    runs: Path, monkeypatch: pytest.MonkeyPatch, left: float, waits: tuple[float, ...]
) -> None:
    """Until the bytes are gone: for a connection in the pool, for a new one, for room to write; not for the answer."""
    monkeypatch.setattr(FileLog, "holds", lambda _log, seconds=0.0: seconds <= left)
    seen: list[dict[str, float]] = []

    async def service(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"])
        return httpx.Response(200)

    @runner.tool
    async def act() -> object:
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [runner.web.key_hook]}
        transport = httpx.MockTransport(service)
        async with httpx.AsyncClient(transport=transport, timeout=60.0, event_hooks=hooks) as client:
            await asyncio.sleep(0)
            return runner.web.result(await client.post("http://service/act"))

    assert stage.finished(stage.start(ACT, act, runs=runs)) == "over"
    assert [(one["pool"], one["connect"], one["write"]) for one in seen] == [waits]
    assert seen[0]["read"] == 60.0


def test_a_lookup_is_not_asked_for_a_run_that_is_lost(runs: Path) -> None:
    """Nothing begins, not even what changes nothing."""
    looked: list[str] = []

    @runner.tool(timeout=1.0)
    def act() -> str:
        raise runner.OutcomeUnknown("no answer")

    @act.lookup(visible_within=0)
    def found(_call: runner.Call) -> runner.Missing:
        looked.append("look")
        return runner.Missing()

    with pytest.raises(eventlog.LockLost):
        stage.start(ACT, act, runs=runs, clock=stage.Ticking(), watch=loses_after(runs, LookupAsked))
    assert looked == []
