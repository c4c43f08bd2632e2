"""The tracker's process: one for a world, found again, started again, gone when nobody needs it."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from runner import triage
from runner.triage import _files, _tracker_process
from runner.triage._tracker_store import Issue, stored
from tests.support import stage
from tests.triage import worlds
from tests.triage.worlds import is_locked, tracker_pid

T = TypeVar("T")
DRAFT = {"cause": "c", "title": "t", "body": "b"}


def ended(world: Path) -> bool:
    """Whether no process is this world's tracker."""
    return not is_locked(world / "tracker.lock")


def client_of(url: str) -> httpx.AsyncClient:
    """A client of a tracker."""
    return httpx.AsyncClient(base_url=url, timeout=10, trust_env=False)


def ask(world: Path, question: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
    """Put a question to the world's tracker, started if need be."""

    async def asked() -> T:
        async with client_of(await triage.tracker(world)) as client:
            return await question(client)

    return asyncio.run(asked())


def file(world: Path) -> httpx.Response:
    """File an issue under key k."""
    return ask(world, lambda client: client.post("/issues", json=DRAFT, headers={"Idempotency-Key": "k"}))


def test_starters_at_once_end_up_with_one_tracker(tmp_path: Path) -> None:
    """Two trackers on one file would have two ideas of what is in flight."""

    async def at_once() -> list[str]:
        return await asyncio.gather(*(triage.tracker(tmp_path) for _ in range(4)))

    assert len(set(asyncio.run(at_once()))) == 1


def test_a_running_tracker_is_found_again(tmp_path: Path) -> None:
    """The address is kept in the world, so the next life of a run talks to the same process."""
    asyncio.run(triage.tracker(tmp_path))
    first = tracker_pid(tmp_path)
    asyncio.run(triage.tracker(tmp_path))
    assert tracker_pid(tmp_path) == first


def test_it_listens_on_this_machine_alone(tmp_path: Path) -> None:
    """A tracker for a demonstration is nobody else's business."""
    assert asyncio.run(triage.tracker(tmp_path)).startswith("http://127.0.0.1:")


def test_it_lives_in_a_session_of_its_own(tmp_path: Path) -> None:
    """A signal to the agent's group, or the end of its terminal, must not reach it."""
    asyncio.run(triage.tracker(tmp_path))
    pid = tracker_pid(tmp_path)
    assert pid is not None
    assert os.getsid(pid) == pid


def test_killed_between_commit_and_reply_it_gives_the_repeat_the_first_ones_issue(tmp_path: Path) -> None:
    """The moment that keys exist for: the client knows nothing, the file knows all."""
    triage.set_tracker_faults(tmp_path, triage.TrackerFaults(delay=30))
    lost: list[BaseException] = []

    def first() -> None:
        try:
            file(tmp_path)
        except httpx.HTTPError as error:
            lost.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    stage.within(90, lambda: bool(stored(tmp_path / "tracker.sqlite", Issue)))
    pid = tracker_pid(tmp_path)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    thread.join(90)
    assert isinstance(lost[0], httpx.TransportError)
    triage.set_tracker_faults(tmp_path, triage.TrackerFaults())
    assert (file(tmp_path).status_code, len(stored(tmp_path / "tracker.sqlite", Issue))) == (200, 1)


def test_a_running_tracker_obeys_changed_faults(tmp_path: Path) -> None:
    """Nobody has to restart it to give it a fault."""
    assert file(tmp_path).status_code == 201
    pid = tracker_pid(tmp_path)
    triage.set_tracker_faults(tmp_path, triage.TrackerFaults(ignore_keys=True))
    assert file(tmp_path).status_code == 201
    assert tracker_pid(tmp_path) == pid


@pytest.mark.fault("an impostor on a service's port")
def test_what_a_dead_tracker_said_of_its_port_is_not_believed(tmp_path: Path) -> None:
    """A port is given to someone else after its process died: only who holds the lock is asked, and is killed."""

    async def found() -> tuple[str, str]:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        there = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        (tmp_path / "tracker.lock").write_text(f"{os.getpid()} {there}")
        async with server:
            return there, await triage.tracker(tmp_path)

    there, ours = asyncio.run(found())
    assert there != ours
    worlds.end_trackers(tmp_path)
    stage.within(90, lambda: ended(tmp_path))
    (tmp_path / "tracker.lock").write_text(f"{os.getpid()} {there}")
    _tracker_process.kill(tmp_path)


def test_it_ends_when_its_world_is_gone(tmp_path: Path) -> None:
    """A tracker whose file was deleted would answer from memory that nobody can check."""
    world = tmp_path / "world"
    world.mkdir()
    asyncio.run(triage.tracker(world))
    elsewhere = world.rename(tmp_path / "elsewhere")
    assert not ended(elsewhere)
    stage.within(90, lambda: ended(elsewhere))


def serve_here(world: Path, pause: Callable[[float], Awaitable[None]], clock: Callable[[], float]) -> None:
    """Be the world's tracker in this process, with a clock of the test's."""
    held = _files.take(world / "tracker.lock")
    assert held is not None
    asyncio.run(_tracker_process.serve(world, held, clock=clock, pause=pause))


def test_who_asks_keeps_it(tmp_path: Path) -> None:
    """It ends 120 s after the last request, and not while it answers one."""
    seconds, asked = 0.0, list[int]()
    triage.set_tracker_faults(tmp_path, triage.TrackerFaults(delay=0.2))

    async def pause(_: float) -> None:
        nonlocal seconds
        seconds += 50
        if len(asked) < 3:
            async with client_of(await triage.tracker(tmp_path)) as client:
                asked.append((await client.post("/issues", json=DRAFT)).status_code)

    serve_here(tmp_path, pause, lambda: seconds)
    assert asked == [201] * 3
    assert seconds == 300


def test_it_ends_when_idle_and_takes_its_address_along(tmp_path: Path) -> None:
    """With a clock of the test's: after 120 s without a request, at the next look."""
    seconds = 0.0
    looks: list[int | None] = []

    async def pause(_: float) -> None:
        nonlocal seconds
        looks.append(tracker_pid(tmp_path))
        seconds += 50
        await asyncio.sleep(0.05)

    serve_here(tmp_path, pause, lambda: seconds)
    assert looks == [os.getpid()] * 3
    assert tracker_pid(tmp_path) is None
    assert ended(tmp_path)


def test_a_tracker_that_does_not_come_up_is_told(tmp_path: Path) -> None:
    """Its file is no database: it is tried again, the log beside it says why, and the error says where to look."""
    (tmp_path / "tracker.sqlite").write_text("not a database, but long enough to be taken for one" * 40)
    with pytest.raises(triage.TrackerDown, match="does not listen") as caught:
        asyncio.run(_tracker_process.url(tmp_path, within=90))
    assert "tracker.log" in caught.value.hint
    stage.within(90, lambda: ended(tmp_path))
    assert (tmp_path / "tracker.log").read_text().count("file is not a database") > 1


def test_faults_in_the_file_are_not_guessed_at(tmp_path: Path) -> None:
    """A misspelt fault that was ignored would let a test pass for the wrong reason."""
    (tmp_path / "tracker.json").write_text('{"ignore_key": true}')
    with pytest.raises(triage.WrongWorld, match="ignore_key"):
        triage.tracker_faults(tmp_path)


def test_faults_are_kept(tmp_path: Path) -> None:
    """In the world, made private if it was not there."""
    faults = triage.TrackerFaults(ignore_keys=True, key_ttl=5, delay=1, lookup_down=True)
    triage.set_tracker_faults(tmp_path / "world", faults)
    assert triage.tracker_faults(tmp_path / "world") == faults
    assert (tmp_path / "world").stat().st_mode & 0o777 == 0o700


def test_faults_are_not_kept_where_no_world_can_be(tmp_path: Path) -> None:
    """A file in the way gets a sentence, not a traceback."""
    (tmp_path / "world").write_text("")
    with pytest.raises(triage.WrongWorld, match="File exists"):
        triage.set_tracker_faults(tmp_path / "world", triage.TrackerFaults())


def test_a_foreign_runner_in_the_current_directory_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracker is started by name of module: a user's own runner.py must not be taken for ours."""
    (tmp_path / "runner.py").write_text("raise SystemExit('foreign')")
    monkeypatch.chdir(tmp_path)
    assert asyncio.run(triage.tracker(tmp_path)).startswith("http://")


def test_whoever_finds_the_lock_held_starts_none_and_waits_for_what_its_holder_says(tmp_path: Path) -> None:
    """The lock comes before the file and the socket: nothing is touched of what another may just be making."""
    held = _files.take(tmp_path / "tracker.lock")
    assert held is not None
    with closing(held):
        with pytest.raises(triage.TrackerDown):
            asyncio.run(_tracker_process.url(tmp_path, within=0.2))
        assert [place.name for place in tmp_path.iterdir()] == ["tracker.lock"]
        held.say(1, "http://there")
        assert asyncio.run(triage.tracker(tmp_path)) == "http://there"
