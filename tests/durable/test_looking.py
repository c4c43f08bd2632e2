"""What can be said of a program's run from its log: retrace, preflight, guarantees, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import runner
from runner._durable.cursor import Chain
from runner.adapters import Durable, declared
from tests.durable.looping import Framework
from tests.durable.test_programs import Bank


def test_a_retrace_runs_the_program_and_stops_at_the_first_live_thing(tmp_path: Path) -> None:
    """Nothing happens, whether the log ends there or not."""
    bank = Bank()
    bank.breaks = "charged"
    with pytest.raises(RuntimeError):
        runner.run_sync(bank.program(), "Order.", run="r", runs=tmp_path)
    happened, bank.breaks = list(bank.happened), ""
    found = runner.review.retrace("r", bank.program(), runs=tmp_path)
    assert (found.divergence, found.drift, found.decisions) == (None, (), 2)
    assert bank.happened == happened


def test_a_retrace_names_the_line_where_the_program_goes_another_way(tmp_path: Path) -> None:
    """Another call, or a tool that needs a yes now."""
    bank = Bank()
    runner.run_sync(bank.program(), "Order.", run="r", runs=tmp_path)

    async def other(run: Durable, _task: str, _inputs: None) -> None:
        await run.act("charge", {"amount": 99})

    found = runner.review.retrace("r", bank.program(other), runs=tmp_path).divergence
    assert found is not None
    assert found.seq == 3
    assert "the program makes a call of charge" in found.why
    asked = runner.review.retrace("r", bank.program(approval=True), runs=tmp_path).divergence
    assert asked is not None
    assert asked.seq == 5
    assert len([what for what in bank.happened if what.startswith("charge")]) == 1


def test_a_retrace_of_a_framework_learns_its_tools_by_running_it(tmp_path: Path) -> None:
    """Their declarations decide, as those of any agent."""
    asked: list[int] = []

    def program(effect: str) -> Any:
        forty = Framework(
            [runner.testing.tool_calls(("look", {})), runner.Reply(text="done")], {"look": str}, {"look": effect}
        )

        @runner.durable_main(name="f", framework="forty")
        async def main(run: Durable, task: str, _inputs: None) -> str:
            said = await forty.run(run, task)
            asked.append(forty.asked)
            return said

        return main

    runner.run_sync(program("reads"), "Look.", run="r", runs=tmp_path)
    assert runner.review.retrace("r", program("reads"), runs=tmp_path).divergence is None
    changed = runner.review.retrace("r", program("idempotent"), runs=tmp_path).divergence
    assert changed is not None
    assert "effect" in changed.why
    assert asked == [2, 0, 0]


def test_what_a_program_can_not_do_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """It takes no message, and its run is no test of its own."""
    bank = Bank()
    bank.breaks = "charged"
    with pytest.raises(RuntimeError):
        runner.run_sync(bank.program(), "Order.", run="r", runs=tmp_path)
    with pytest.raises(runner.errors.NotSendable, match=r"a loop of its own \(python\), which takes no messages"):
        runner.send("r", "Hurry.", "mae", runs=tmp_path)
    with pytest.raises(runner.BadAgent, match="would run on masked words"):
        runner.review.export("r", bank.program(), runs=tmp_path)
    (found,) = runner.review.preflight(tmp_path, bank.program(approval=True))
    assert found.able


def test_a_tool_that_declares_nothing_is_the_first_of_the_guarantees() -> None:
    """It is non_idempotent: each crash in it asks a person."""
    tools = [declared("look", "", {}, "reads"), declared("send", "", {})]

    async def main(_task: str, _inputs: None) -> None: ...

    first, second = runner.review.guarantees(runner.durable_main(name="f", tools=tools)(main))
    assert (first.tool, first.effect, second.tool) == ("send", "non_idempotent", "look")
    assert first.words == "nobody declared what a repeat does; asks a person"


def test_the_digest_of_a_conversation_costs_its_new_messages() -> None:
    """Bytes that are hashed grow with the conversation, not with its square; other messages have another digest."""
    hashed = 0

    def dump(message: object) -> bytes:
        nonlocal hashed
        data = str(message).encode()
        hashed += len(data)
        return data

    chain, messages, digests = Chain(), list[object](), set[str]()
    for n in range(200):
        messages.append(f"message {n:04}")
        digests.add(chain.digest(messages, dump))
    assert (hashed, len(digests)) == (200 * len("message 0000"), 200)
    assert Chain().digest(messages, dump) == chain.digest(list(messages), dump)
    assert chain.digest([*messages[:100], "other", *messages[101:]], dump) not in digests


def test_a_function_of_other_parameters_is_no_program() -> None:
    """It is refused where it is declared."""

    async def main(_task: str) -> None: ...

    with pytest.raises(runner.BadAgent, match="takes other parameters"):
        runner.durable_main(name="f")(main)
