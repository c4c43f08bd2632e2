"""Plain Python on a log: steps and acts, once, whatever ends a life."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
from runner import durable, durable_main
from runner._durable.program import Program
from runner.adapters import Durable
from runner.errors import NeedsDecision
from tests.durable.test_asks import lines

Main = Callable[[Durable, str, Any], Awaitable[object]]


class Bank:
    """What happened outside, by name."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.breaks = ""

    def program(self, main: Main | None = None, **options: Any) -> Program:
        """A program that draws a number, charges a card and sends a mail."""

        @runner.tool(effect="idempotent")
        def charge(amount: int) -> str:
            self.happened.append(f"charge {amount}")
            return "charged"

        @runner.tool(approval=options.pop("approval", False))
        async def mail(call: runner.Call, to: str) -> str:
            self.happened.append(f"mail {to} {call.key}")
            return f"mailed {to}"

        async def order(run: Durable, task: str, _inputs: None) -> str:
            amount = await run.step("amount", self.draw)
            self.breaks_at("drawn")
            charged = await run.act(charge, {"amount": amount})
            self.breaks_at("charged")
            return f"{task} {charged} {await run.act('mail', {'to': 'ada'})}"

        return durable_main(name="order", tools=[charge, mail], **options)(main or order)

    def draw(self) -> int:
        """Another number each time."""
        self.happened.append("draw")
        return len(self.happened)

    def breaks_at(self, place: str) -> None:
        """Raise at this place, if the test said so."""
        if self.breaks == place:
            raise RuntimeError(place)


@pytest.mark.parametrize("place", ["drawn", "charged"])
def test_a_program_that_runs_again_does_only_what_is_not_recorded(tmp_path: Path, place: str) -> None:
    """What a step gave and what a call did is handed back, and the result is that of one undisturbed life."""
    bank = Bank()
    bank.breaks = place
    with pytest.raises(RuntimeError, match=place):
        runner.run_sync(bank.program(), "Order.", run="r", runs=tmp_path)
    bank.breaks = ""
    outcome = runner.run_sync(bank.program(), "Order.", run="r", runs=tmp_path).finished()
    assert outcome.answer == "Order. charged mailed ada"
    assert [what.split()[0] for what in bank.happened] == ["draw", "charge", "mail"]
    assert outcome.state.turns == outcome.state.spent.total_dollars == 0


def test_steps_side_by_side_are_handed_back_by_their_numbers(tmp_path: Path) -> None:
    """However late each was done: the first of a name is the first that was begun, also if another one failed."""
    bank, came = Bank(), list[Any]()

    async def main(run: Durable, _task: str, _inputs: None) -> None:
        done = asyncio.Event()

        async def slow() -> str:
            await done.wait()
            return "slow"

        def broken() -> str:
            done.set()
            raise ValueError

        async def fast() -> str:
            try:
                return str(await run.step("drawn", broken if not came else lambda: "unused"))
            except ValueError:
                return str(await run.step("drawn", lambda: "fast"))

        came.append(await asyncio.gather(run.step("drawn", slow), fast(), run.step("drawn", lambda: "last")))
        bank.breaks_at("drawn")

    bank.breaks = "drawn"
    for _ in range(2):
        with pytest.raises(RuntimeError):
            runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    assert came == [["slow", "fast", "last"]] * 2


def test_a_call_of_a_program_takes_two_lines(tmp_path: Path) -> None:
    """One before it acts, one after."""
    runner.start_sync(Bank().program(), "Order.", run="r", runs=tmp_path)
    call = [["calls_made", "attempt_marked"], ["result_recorded"]]
    assert lines(tmp_path) == [["run_started"], ["step_recorded"], *call, *call, ["phase_changed"]]


def test_a_person_is_asked_before_an_act_and_the_arguments_that_they_gave_run(tmp_path: Path) -> None:
    """The program waits for no process: it is paused, answered from outside, and carried on."""
    bank = Bank()
    paused = runner.run_sync(bank.program(approval=True), "Order.", run="r", runs=tmp_path)
    assert isinstance(paused, runner.Paused)
    assert isinstance(runner.run_sync(bank.program(approval=True), "Order.", run="r", runs=tmp_path), runner.Paused)
    runner.edit("r", paused.questions[0].id, "mae", {"to": "bob"}, runs=tmp_path)
    outcome = runner.resume_sync("r", bank.program(approval=True), runs=tmp_path).finished()
    assert outcome.answer == "Order. charged mailed bob"
    assert [what.split()[0] for what in bank.happened] == ["draw", "charge", "mail"]


def test_a_refused_act_raises_and_does_so_again(tmp_path: Path) -> None:
    """A program may choose another way by it, which is the same way when it runs again."""
    bank, ways = Bank(), list[str]()

    async def main(run: Durable, _task: str, _inputs: None) -> None:
        try:
            await run.act("mail", {"to": "ada"})
        except runner.ToolFailed as failed:
            ways.append(failed.why)
        bank.breaks_at("refused")

    bank.breaks = "refused"
    program = bank.program(main, approval=True)
    paused = runner.run_sync(program, "Order.", run="r", runs=tmp_path)
    assert isinstance(paused, runner.Paused)
    runner.refuse("r", paused.questions[0].id, "mae", "no", runs=tmp_path)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            runner.run_sync(program, "Order.", run="r", runs=tmp_path)
    assert ways == ["mae refused this call: no"] * 2
    assert bank.happened == []


def test_an_act_with_other_arguments_is_another_way(tmp_path: Path) -> None:
    """The error names the line and both sides; nothing is charged again."""
    bank, amounts = Bank(), iter((1, 2))

    async def main(run: Durable, _task: str, _inputs: None) -> None:
        await run.act("charge", {"amount": next(amounts)})
        bank.breaks_at("charged")

    bank.breaks = "charged"
    with pytest.raises(RuntimeError):
        runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    with pytest.raises(replay.Diverged, match="at line 2: the program makes a call of charge") as diverged:
        runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    assert '{"amount": 1}' in diverged.value.diff
    assert '{"amount": 2}' in diverged.value.diff
    assert bank.happened == ["charge 1"]


def test_a_program_that_leaves_out_what_it_did_is_another_way(tmp_path: Path) -> None:
    """Before anything new happens, and before the run counts as done."""
    bank, lives = Bank(), iter((["charge"], ["mail"], []))

    async def main(run: Durable, _task: str, _inputs: None) -> None:
        for name in next(lives):
            await run.act(name, {"amount": 1} if name == "charge" else {"to": "ada"})
        bank.breaks_at("end")

    bank.breaks = "end"
    with pytest.raises(RuntimeError):
        runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    bank.breaks = ""
    for _ in range(2):
        with pytest.raises(replay.Diverged):
            runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    assert bank.happened == ["charge 1"]


def test_branches_side_by_side_are_handed_back_whatever_their_order(tmp_path: Path) -> None:
    """Calls are recognised by what they are: which branch comes first is nobody's promise."""
    bank, slow = Bank(), iter((0, 1, 3))

    async def main(run: Durable, _task: str, _inputs: None) -> None:
        async def branch(first: int, passes: int) -> None:
            for _ in range(passes):
                await asyncio.sleep(0)
            for n in (first, first + 1):
                await run.act("charge", {"amount": n})

        await asyncio.gather(branch(10, next(slow)), branch(20, 0))
        bank.breaks_at("end")

    bank.breaks = "end"
    for _ in range(2):
        with pytest.raises(RuntimeError):
            runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    bank.breaks = ""
    runner.run_sync(bank.program(main), "Order.", run="r", runs=tmp_path)
    assert sorted(bank.happened) == ["charge 10", "charge 11", "charge 20", "charge 21"]


def test_a_run_of_a_program_takes_no_agent_and_the_other_way_round(tmp_path: Path) -> None:
    """Their logs mean different things."""
    bank = Bank()
    bank.breaks = "drawn"
    with pytest.raises(RuntimeError):
        runner.run_sync(bank.program(), "Order.", run="r", runs=tmp_path)
    agent = runner.Agent(name="order", model=runner.testing.ScriptedModel(["x"]))
    with pytest.raises(runner.BadAgent, match="run r is a program's"):
        runner.resume_sync("r", agent, runs=tmp_path)


async def test_the_block_raises_what_a_person_must_answer_and_goes_on_then(tmp_path: Path) -> None:
    """The same code run again carries the run on."""
    done: list[str] = []

    @runner.tool(approval=True)
    def wire(amount: int) -> str:
        done.append(f"wire {amount}")
        return "wired"

    async def life() -> str:
        async with durable("t", runs=tmp_path, run="r", tools=[wire]) as run:
            run.answer = await run.act(wire, {"amount": 7})
        return run.answer

    with pytest.raises(NeedsDecision) as waits:
        await life()
    with pytest.raises(NeedsDecision):
        await life()
    runner.approve("r", waits.value.questions[0], "mae", runs=tmp_path)
    assert await life() == "wired"
    assert done == ["wire 7"]


async def test_a_run_inside_a_call_waits_and_so_does_the_one_around_it(tmp_path: Path) -> None:
    """The call is taken back and still due; the inner run is the same one when it is tried again."""
    done: list[str] = []

    @runner.tool(approval=True)
    def wire(amount: int) -> str:
        done.append(f"wire {amount}")
        return "wired"

    async def inner(_call: runner.Call) -> str:
        async with durable("inner", runs=tmp_path, name="child", tools=[wire]) as run:
            run.answer = await run.act(wire, {"amount": 7})
        return run.answer or ""

    async def life() -> str:
        async with durable("outer", runs=tmp_path, run="r") as run:
            run.answer = await run.act("delegate", {}, inner)
        return run.answer

    with pytest.raises(NeedsDecision) as waits:
        await life()
    assert waits.value.run.startswith("child-")
    runner.approve(waits.value.run, waits.value.questions[0], "mae", runs=tmp_path)
    assert await life() == "wired"
    assert done == ["wire 7"]
    assert len(eventlog.store(tmp_path).runs()) == 2


@pytest.mark.fault("unstorable content")
@pytest.mark.parametrize(
    ("value", "answer"),
    [("half \ud83d", "half \ufffd"), (["list", 7], '["list", 7]'), ("x" * (17 << 20), None)],
    ids=["half a character", "no text", "too long"],
)
async def test_whatever_a_program_answers_or_gives_a_tool_its_run_ends(
    tmp_path: Path, value: Any, answer: str | None
) -> None:
    """What can't be kept as it is is put right or cut, in both lives."""

    @runner.tool(effect="reads")
    def take(text: str) -> str:
        return text

    for _ in range(2):
        async with durable("x", runs=tmp_path, run="r") as run:
            assert await run.act(take, {"text": "\udfff"}) == "\ufffd"
            run.answer = value
    kept = runner.read_state("r", tmp_path).answer or ""
    assert kept == answer or (answer is None and kept.startswith("x") and "cut here" in kept)
