"""Whoever follows a run gets every saved line once and in order, hears what is not saved, and never slows the run."""

import asyncio
import gc
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import FileIntended, QuestionAsked
from runner._engine import feed
from runner._runs import load
from tests.support import stage
from tests.support.forkserver import ForkServer

Say = Callable[[runner.Request], Any]


class Speaking:
    """A model that says things before it replies: `say` is given the request."""

    name = "speaking"

    def __init__(self, script: Sequence[Any], say: Say) -> None:
        self._scripted, self._say = stage.scripted(*script), say
        self.heard: list[bool] = []

    def bound(self, request: runner.Request) -> runner.CostBound:
        """As scripted."""
        return self._scripted.bound(request)

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Say it, then what is scripted."""
        self.heard.append(request.heard is not None)
        if request.heard is not None:
            await self._say(request)
        return await self._scripted.ask(request)


def agent(say: Say, *script: Any, tools: Sequence[runner.Tool] = ()) -> runner.Agent:
    """An agent whose model speaks."""
    return runner.Agent(name="agent", model=Speaking(script or ["over"], say), tools=tools)


async def words(request: runner.Request) -> None:
    """Say three words."""
    assert request.heard is not None
    for word in ("one ", "two ", "three"):
        request.heard(word)
        await asyncio.sleep(0)


async def followed(one: runner.Agent, runs: Path, run: str = "r") -> list[Any]:
    """All that a stream of a worker's run gives."""
    async with runner.Worker([one], runs=runs) as worker:
        made = await worker.start(one, stage.TASK, run=run)
        return [told async for told in made.events()]


def on_disk(runs: Path, run: str = "r") -> list[tuple[int, list[replay.AnyEvent]]]:
    """The lines that a reader of the log finds."""
    lines = eventlog.store(runs).read(run).lines
    return [(line.seq, [replay.decode(raw) for raw in line.events]) for line in lines if line.events]


def saved(told: Sequence[Any]) -> list[tuple[int, list[replay.AnyEvent]]]:
    """The lines that a stream gave."""
    return [(one.seq, list(one.events)) for one in told if one.kind == "saved"]


@runner.tool(effect="reads")
def look(call: runner.Call) -> str:
    """Look, and say how far it is."""
    call.progress(0.5, "half way")
    return "x"


LOOK = runner.testing.tool_calls(("look", {}), text="I look.")


def test_lines_and_pieces_come_in_the_order_in_which_they_happened(runs: Path) -> None:
    """The text before the reply that it becomes, progress between a marker and its result."""
    told = asyncio.run(followed(agent(words, LOOK, "over", tools=[look]), runs))
    assert saved(told) == on_disk(runs)
    kinds = [(key, len([*group])) for key, group in itertools.groupby(one.kind for one in told)]
    assert kinds == [("saved", 2), ("text", 3), ("saved", 1), ("progress", 1), ("saved", 1), ("text", 3), ("saved", 1)]
    assert [(one.turn, one.n) for one in told if one.kind == "text"] == [(1, 1)] * 3 + [(2, 1)] * 3
    (progress,) = (one for one in told if one.kind == "progress")
    assert (progress.call, progress.tool, progress.n, progress.turn) == ("1.0", "look", 1, 1)
    assert (progress.fraction, progress.text, progress.run) == (0.5, "half way", "r")
    assert {one.dropped for one in told} == {0}


def test_a_stream_that_begins_late_or_after_a_line_gives_the_rest_alone(runs: Path) -> None:
    """So whoever was cut off goes on where it was."""
    stage.start([LOOK, "over"], look, runs=runs)
    lines = on_disk(runs)

    async def told(after: int) -> list[Any]:
        return [one async for one in runner.stream("r", runs=runs, after=after)]

    for after in range(-1, lines[-1][0]):
        assert saved(asyncio.run(told(after))) == [line for line in lines if line[0] > after]


def carry(runs: str) -> str:
    """Carry a run that exists, in a process of its own."""
    return stage.finished(runner.resume_sync("r", agent(words, LOOK, "over", tools=[look]), runs=runs))


def test_a_run_of_another_process_is_followed_by_its_lines(runs: Path, forks: ForkServer) -> None:
    """It says nothing else here, and its end is found in the log."""

    async def main() -> list[Any]:
        stream = runner.stream("r", runs=runs)
        told = [await anext(stream)]
        child = await asyncio.to_thread(forks.begin, carry, runs=runs)
        told += [one async for one in stream]
        assert (await asyncio.to_thread(child.end)).value == "over"
        return told

    runner.enqueue(agent(words, LOOK, "over", tools=[look]), stage.TASK, runs=runs, run="r")
    told = asyncio.run(main())
    assert saved(told) == on_disk(runs)
    assert {one.kind for one in told} == {"saved"}


def test_a_run_that_rests_is_followed_into_its_next_life(runs: Path) -> None:
    """A person's answer ends the pause, and the stream is still there."""

    @runner.tool(effect="reads", approval=True)
    def ask() -> str:
        return "x"

    one = agent(words, runner.testing.tool_calls(("ask", {})), "over", tools=[ask])

    async def main() -> list[Any]:
        told = []
        async with runner.Worker([one], runs=runs) as worker:
            made = await worker.start(one, stage.TASK, run="r")
            async for thing in made.events():
                told.append(thing)
                for event in thing.events:
                    if isinstance(event, QuestionAsked):
                        await asyncio.to_thread(runner.approve, "r", event.id, "ann", runs=runs)
        return told

    told = asyncio.run(main())
    assert saved(told) == on_disk(runs)
    assert "".join(one.text for one in told) == "one two three" * 2


@pytest.mark.parametrize("first", [0, 1])
def test_a_reader_that_is_slow_misses_pieces_and_no_line_and_is_told_how_many(runs: Path, first: int) -> None:
    """The run does not wait for it: it is over before a single piece was read."""
    said = 3 * feed.KEPT

    async def much(request: runner.Request) -> None:
        assert request.heard is not None
        for n in range(said):
            request.heard(f"{n} ")

    async def main() -> list[Any]:
        one = agent(much, LOOK, "over", tools=[look])
        async with runner.Worker([one], runs=runs) as worker:
            made = await worker.start(one, stage.TASK, run="r")
            stream = made.events()
            begun = [await anext(stream) for _ in range(first)]
            stage.finished(await made.outcome())
            return begun + [told async for told in stream]

    told = asyncio.run(main())
    assert saved(told) == on_disk(runs)
    heard = [one.text for one in told if one.kind in ("text", "progress")]
    assert sum(one.dropped for one in told) + len(heard) == 2 * said + 1
    assert len(heard) <= feed.KEPT


def test_a_line_that_was_read_and_told_is_given_though_the_telling_is_dropped(runs: Path) -> None:
    """It is read once."""
    stage.start(["over"], runs=runs)
    uid = runner.read_state("r", runs).uid

    async def main() -> list[Any]:
        stream, fed = runner.stream("r", runs=runs), feed.of("r")
        fed.tell(uid, feed.Streamed(kind="saved", run="r", seq=2))
        begun = [await anext(stream)]
        for _ in range(feed.KEPT):
            fed.tell(uid, feed.Streamed(kind="text", run="r", text="x"))
        return begun + [told async for told in stream]

    assert saved(asyncio.run(asyncio.wait_for(main(), 60))) == on_disk(runs)


def test_fifty_readers_hear_a_thousand_pieces_each(runs: Path) -> None:
    """All of them, in their order, from one thread to many."""

    async def much(request: runner.Request) -> None:
        assert request.heard is not None
        for n in range(1000):
            request.heard(f"{n} ")
            if n % 20 == 0:
                await asyncio.sleep(0)

    async def heard(stream: Any) -> list[str]:
        return [told.text async for told in stream if told.kind == "text"]

    async def main() -> list[list[str]]:
        one = agent(much)
        async with runner.Worker([one], runs=runs) as worker:
            made = await worker.start(one, stage.TASK, run="r")
            return await asyncio.gather(*(heard(made.events()) for _ in range(50)))

    assert asyncio.run(main()) == [[f"{n} " for n in range(1000)]] * 50


@pytest.mark.parametrize("end", ["closed", "forgotten"])
def test_a_model_streams_for_nobody_when_nobody_listens(runs: Path, end: str) -> None:
    """A reader that is gone is gone, whether it said so or not."""

    async def main() -> list[bool]:
        one = agent(words, LOOK, "over", tools=[look])
        async with runner.Worker([one], runs=runs) as worker:
            made = await worker.start(one, stage.TASK, run="r")
            stream: Any = made.events()
            if end == "closed":
                await stream.aclose()
                assert [told async for told in stream] == []
            del stream
            gc.collect()
            stage.finished(await made.outcome())
        assert isinstance(one.model, Speaking)
        return one.model.heard

    assert asyncio.run(main()) == [False, False]


def test_lines_that_were_not_told_are_read_in_the_log(
    runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A snapshot's, and those of files: whatever a life writes beside its loop."""
    monkeypatch.setattr(load, "LEAST", 4000)

    @runner.tool(effect="idempotent")
    def write(n: int, call: runner.Call) -> str:
        call.workspace.write_text(f"{n}.txt", "x" * 200)
        return "x" * 500

    script = [runner.testing.tool_calls(("write", {"n": n})) for n in range(12)]
    one = agent(words, *script, "over", tools=[write])

    async def main() -> list[Any]:
        async with runner.Worker([one], runs=runs) as worker:
            made = await worker.start(one, stage.TASK, run="r", workspace=tmp_path)
            return [told async for told in made.events()]

    told = asyncio.run(main())
    assert len([*(runs / "r").glob("seg-*")]) > 1
    assert len(stage.events(runs, FileIntended)) == 12
    assert saved(told) == on_disk(runs)
    assert sum(len(one.text) for one in told) == 13 * len("one two three")


def test_two_runs_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    """A name is a place's own, and one process may look at several places."""

    async def main() -> list[list[Any]]:
        first, second = (agent(words, answer) for answer in ("first", "second"))
        return [*await asyncio.gather(followed(first, tmp_path / "a"), followed(second, tmp_path / "b"))]

    for place, told in zip(("a", "b"), asyncio.run(main()), strict=True):
        assert saved(told) == on_disk(tmp_path / place)
        assert "".join(one.text for one in told) == "one two three"


@pytest.mark.fault("unstorable content")
def test_whoever_follows_a_run_through_several_lives_knows_whether_one_is_here(runs: Path) -> None:
    """A life that was counted out twice would hide the next one, and its pieces would be looked for in the log."""

    @runner.tool(approval=True)
    def act() -> None:
        pass

    held, paused = feed.of("r"), stage.agent([runner.testing.tool_calls(("act", {})), "over"], act)
    runner.start_sync(paused, "t", runs=runs, run="r")
    for _ in range(2):
        assert isinstance(runner.resume_sync("r", paused, runs=runs), runner.Paused)
        assert set(held.lives.values()) == {0}


def test_what_is_told_is_bounded_and_never_raises(runs: Path) -> None:
    """A model or a tool that tells nonsense harms neither its run nor who reads it."""

    @runner.tool(effect="reads", secret=["token"])
    def tell(token: str, call: runner.Call) -> str:
        for fraction, text in [(float("nan"), "x" * 100_000), (7, 3), ("half", None), (10**400, f"with {token}")]:
            call.progress(fraction, text)  # type: ignore[arg-type] # that is the point
        return "told"

    async def nonsense(request: runner.Request) -> None:
        assert request.heard is not None
        for piece in (None, 3, b"x", "", "\ud800", "long " * 10_000):
            request.heard(piece, 0, None) if piece == 3 else request.heard(piece)

    calls = runner.testing.tool_calls(("tell", {"token": "hunter2hunter2"}))
    told = asyncio.run(followed(agent(nonsense, calls, "over", tools=[tell]), runs))
    assert saved(told) == on_disk(runs)
    text = [one.text for one in told if one.kind == "text" and one.turn == 1]
    assert "".join(text) == "\ufffd" + "long " * 10_000
    assert max(map(len, text)) <= feed.PIECE
    progress = [(one.fraction, one.text) for one in told if one.kind == "progress"]
    assert [fraction for fraction, _ in progress] == [None] * 4
    assert "hunter2" not in progress[3][1]
    assert len(progress[0][1]) < 5000


def test_a_run_that_is_not_there_is_said_at_the_first_step(runs: Path) -> None:
    """Making a stream touches nothing."""
    stream = runner.stream("r", runs=runs)
    with pytest.raises(runner.NoSuchRun):
        asyncio.run(anext(stream))
    assert not runs.exists()
