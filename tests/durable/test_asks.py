"""A framework's loop on a log: what it gets when its code runs again."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from runner import durable
from runner.adapters import Durable
from runner.testing import tool_calls
from tests.durable.looping import Framework, digests

FINAL = runner.Reply(text="done")


def lines(runs: Path, run: str = "r") -> list[list[str]]:
    """The tags of each line."""
    found = eventlog.store(runs).read(run).lines
    return [[replay.tag(replay.decode(raw, seq=line.seq)) for raw in line.events] for line in found[1:]]


async def go(framework: Framework, runs: Path, prompt: str = "Pay.", **more: object) -> str:
    """One life."""
    async with durable("Pay the bills.", runs=runs, run="r", framework="forty", **more) as run:  # type: ignore[arg-type]
        run.answer = await framework.run(run, prompt)
    return run.answer or ""


def paying(effects: list[str]) -> Framework:
    """Two reads in one reply, then a payment, then the answer."""

    async def look(call: runner.Call) -> str:
        effects.append(f"look {call.arguments['x']}")
        return f"saw {call.arguments['x']}"

    def pay(call: runner.Call) -> object:
        effects.append(f"pay {call.key}")
        return {"paid": call.arguments["n"]}

    replies = [tool_calls(("look", {"x": 1}), ("look", {"x": 2})), tool_calls(("pay", {"n": 9})), FINAL]
    return Framework(replies, {"look": look, "pay": pay}, {"look": "reads", "pay": "idempotent"})


async def test_a_done_run_is_replayed_without_a_model_a_tool_or_a_line(tmp_path: Path) -> None:
    """Everything is handed back in order, and reading on writes nothing."""
    effects: list[str] = []
    first, again = paying(effects), paying(effects)
    assert await go(first, tmp_path) == "done"
    before = lines(tmp_path)
    assert await go(again, tmp_path) == "done"
    assert (first.asked, again.asked, len(effects)) == (3, 0, 3)
    assert again.seen == first.seen == ["saw 1", "saw 2", '{"paid": 9}']
    assert lines(tmp_path) == before


async def test_reads_demanded_in_one_breath_share_their_lines(tmp_path: Path) -> None:
    """One line for both markers, one for both results; every result is durable before the framework goes on."""
    await go(paying([]), tmp_path)
    assert lines(tmp_path) == [
        ["run_started"],
        ["model_asked"],
        ["reply_saved"],
        ["attempt_marked", "attempt_marked"],
        ["result_recorded", "result_recorded"],
        ["model_asked"],
        ["reply_saved"],
        ["attempt_marked"],
        ["result_recorded"],
        ["model_asked"],
        ["reply_saved"],
        ["phase_changed"],
    ]


async def test_other_messages_are_another_way_and_nothing_happens(tmp_path: Path) -> None:
    """The first request says so, naming the line."""
    effects: list[str] = []
    await go(paying(effects), tmp_path)
    before, other = lines(tmp_path), paying(effects)
    with pytest.raises(replay.Diverged, match="a request to the model that the log does not hold") as diverged:
        await go(other, tmp_path, prompt="Pay twice.")
    assert (other.asked, len(effects), lines(tmp_path)) == (0, 3, before)
    assert diverged.value.seq == 3


async def test_a_failed_request_is_raised_as_it_was_and_handed_back_as_a_failure(tmp_path: Path) -> None:
    """A fallback that chooses by type goes the same way when it runs again."""
    asked: list[str] = []

    async def falls(run: Durable) -> str:
        def down() -> runner.Reply:
            asked.append("first")
            raise ConnectionError("down")

        def second() -> runner.Reply:
            asked.append("second")
            return FINAL

        try:
            reply = await run.ask(digests("m"), runner.CostBound(dollars=0.0), down)
        except ConnectionError:
            reply = await run.ask(digests("m2"), runner.CostBound(dollars=0.0), second)
        return reply.text

    for _ in range(2):
        async with durable("t", runs=tmp_path, run="r") as run:
            run.answer = await falls(run)
    assert asked == ["first", "second"]


async def test_a_final_reply_that_the_framework_does_not_take_is_refused(tmp_path: Path) -> None:
    """It asks again; the log says so, and the run is done with the program's own answer."""
    async with durable("t", runs=tmp_path, run="r") as run:
        for name in ("a", "b"):
            await run.ask(digests(name), runner.CostBound(dollars=0.0), lambda: FINAL)
        run.answer = "mine"
    assert ["reply_refused", "model_asked"] in lines(tmp_path)
    assert runner.read_state("r", tmp_path).answer == "mine"


async def test_calls_that_the_framework_answers_itself_have_its_words(tmp_path: Path) -> None:
    """Invalid arguments, or a tool that is its output: no attempt is made."""
    async with durable("t", runs=tmp_path, run="r") as run:
        await run.ask(digests("a"), runner.CostBound(dollars=0.0), lambda: tool_calls(("out", {})))
        await run.ask(digests("b"), runner.CostBound(dollars=0.0), lambda: FINAL, answers={"c0": "Not so."})
    results = replay.audit(eventlog.store(tmp_path).read("r").lines).calls
    assert [(call.how, call.text, call.attempts) for call in results] == [("invalid", "Not so.", [])]


async def test_a_limit_is_raised_through_the_framework_whatever_it_catches(tmp_path: Path) -> None:
    """It is no exception that a framework turns into a message, and it comes again with everything that follows."""
    caught = 0

    async def swallows(run: Durable) -> None:
        nonlocal caught
        for name in "abc":
            try:
                await run.ask(digests(name), runner.CostBound(dollars=0.0), lambda: FINAL)
            except Exception:  # noqa: BLE001 (as frameworks do)
                caught += 1
            except BaseException:  # noqa: BLE001 (as no framework should)
                caught += 10

    with pytest.raises(runner.errors.TurnLimit):
        async with durable("t", runs=tmp_path, run="r", limits=runner.Limits(turns=1)) as run:
            await swallows(run)
    assert caught == 20
    assert runner.read_state("r", tmp_path).stopped is not None


async def test_a_framework_with_a_memory_of_its_own_goes_on_where_it_is(tmp_path: Path) -> None:
    """Its first request is a later one of the log: what lies before is skipped."""

    async def life(names: str) -> list[str]:
        async with durable("t", runs=tmp_path, run="r") as run:
            bodies = {n: functools.partial(runner.Reply, text=n) for n in names}
            return [(await run.ask(digests(n), runner.CostBound(dollars=0.0), bodies[n])).text for n in names]

    assert await life("abc") == ["a", "b", "c"]
    assert await life("c") == ["c"]


async def test_calls_of_an_old_conversation_are_adopted_without_turn_and_spend(tmp_path: Path) -> None:
    """They are made in this run, once."""
    effects: list[str] = []
    old = tool_calls(("pay", {"n": 1}))
    for _ in range(2):
        async with durable("t", runs=tmp_path, run="r") as run:
            if not run.orders(("c0", "pay")):
                await run.adopt(old)
            result = await run.call("c0", "pay", lambda call: effects.append(call.key))
            run.answer = result.text
    state = runner.read_state("r", tmp_path)
    assert (len(effects), state.turns, state.spent.tokens, state.answer) == (1, 0, 0, "null")
