"""The clerk never pays the rent twice and never loses a receipt, wherever it crashes: a user's own agent, swept."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import testing
from tests.testing.bank.bank import Bank
from tests.testing.bank.clerk import clerk

JOB: dict[str, Any] = {"environment": Bank, "agent": clerk, "task": "Pay the rent for May.", "effects": Bank.effects}
FORGETFUL = {**JOB, "environment": functools.partial(Bank, forgetful=True)}
Sweep = Callable[..., testing.SweepReport]


def test_a_crash_at_any_moment_neither_repeats_nor_loses_a_transfer_or_a_letter(crash_sweep: Sweep) -> None:
    """With keys and a lookup nobody has to be asked either."""
    (row,) = crash_sweep(**JOB, modes=("memory",), pairs=0).rows
    assert row.scenarios > 90
    assert (row.duplicates, row.lost, row.unfinished, row.questions) == (0, 0, 0, 0)


@pytest.mark.full
def test_nor_does_any_other_trouble(crash_sweep: Sweep) -> None:
    """Power cuts, a bank that fails, a model that says something else, letters that go out late."""
    rows = crash_sweep(**JOB, pairs=0).rows
    print(testing.table(rows))  # noqa: T201 (the long tests print what they counted)
    assert {row.mode for row in rows} == set(testing.MODES)
    for row in rows:
        assert row.unfinished == 0
        assert row.mode == "person" or (row.duplicates, row.lost, row.questions) == (0, 0, 0)


@pytest.mark.full
def test_without_keys_and_lookups_a_person_is_asked_and_still_nothing_happens_twice(crash_sweep: Sweep) -> None:
    """What no machine can tell is the only thing that a person decides."""
    (row,) = crash_sweep(**JOB, modes=("memory",), without=("keys", "lookups"), pairs=0).rows
    assert (row.duplicates, row.lost, row.unfinished) == (0, 0, 0)
    assert row.questions > 0


@pytest.mark.full
def test_a_bank_that_forgets_its_keys_is_found_out() -> None:
    """A sweep that could not fail would prove nothing."""
    swept = testing.sweep(**FORGETFUL, modes=("memory",), pairs=0)
    assert swept.rows[0].duplicates > 0
    first = swept.failures[0]
    assert "transfer" in str(first.why)
    (again,) = testing.sweep(**FORGETFUL, only=first.id).failures
    assert (again.id, again.why) == (first.id, first.why)


def test_real_sigkills_of_real_processes_change_nothing_about_it() -> None:
    """The same points, with the kernel and the disk instead of their simulation."""
    done: list[tuple[int, int]] = []
    looked: list[dict[str, int]] = []
    swept = testing.kill_sweep(
        **JOB,
        points=4,
        progress=lambda *now: done.append(now),
        after_death=lambda bank: looked.append(bank.effects()),
    )
    (row,) = swept.rows
    assert swept.failures == ()
    assert row.scenarios >= 6
    assert (row.mode, row.duplicates, row.lost, row.unfinished, row.questions) == ("kill", 0, 0, 0, 0)
    assert done == [(n, 4) for n in range(1, 5)]
    assert {"transfers": 0, "letters": 0} in looked, "after an early death nothing had happened yet"


@functools.cache
def _points() -> tuple[str, ...]:
    return testing.kill_sweep(**JOB, only="kill:0").points


def _after(tool: str) -> str:
    """The id of a death after a tool has acted and before anything of that is recorded."""
    return next(f"kill:{n}" for n, name in enumerate(_points()) if re.fullmatch(rf"tool {tool} \S+, after", name))


def test_real_sigkills_find_a_bank_that_forgets_its_keys() -> None:
    """By the id that a failure names."""
    (failure,) = testing.kill_sweep(**FORGETFUL, only=_after("transfer")).failures
    assert (failure.first, failure.duplicates, failure.lost) == ("tool transfer 2.0, after", 1, 0)


def test_after_a_real_sigkill_logs_and_workspace_are_looked_at_as_in_a_simulated_one() -> None:
    """Effects that are right are not all: here a half-made file is left."""

    def leaves(folder: Path) -> Bank:
        (folder / "workspace").mkdir(exist_ok=True)
        (folder / "workspace" / ".refold-tmp-0123").touch()
        return Bank(folder)

    (failure,) = testing.kill_sweep(**{**JOB, "environment": leaves}, only=_after("transfer")).failures
    assert failure.why == ("left in the workspace: .refold-tmp-0123",)


def test_after_a_real_sigkill_a_person_looks_and_answers_what_is_true() -> None:
    """Without a lookup nobody else can tell that the letter went out."""

    def alone(bank: Bank) -> runner.Agent:
        agent = clerk(bank)
        tools = [tool.around(lambda body: body) for tool in agent.tools]
        for tool in tools:
            tool.find = None
        return agent.replace(tools=tools)

    (scenario,) = testing.kill_sweep(**{**JOB, "agent": alone}, only=_after("mail_receipt")).scenarios
    assert (scenario.questions, scenario.why) == (("3.1-settle-1",), ())


def test_an_agent_that_can_not_finish_undisturbed_is_refused() -> None:
    """Otherwise every scenario would fail for a reason that is not a crash."""
    limits = runner.Limits(turns=1)
    with pytest.raises(testing.NotRepeatable, match="TurnLimit"):
        testing.kill_sweep(**{**JOB, "agent": lambda bank: clerk(bank).replace(limits=limits)})


def test_what_is_promised_of_its_tools(tmp_path: Path) -> None:
    """Before anything crashes."""
    assert [str(each) for each in runner.review.guarantees(clerk(Bank(tmp_path)))] == [
        "runs again; may ask: no; may repeat: no",
        (
            "runs again with its key for 24 h, then asks a person; "
            "once per payee in this run, its continuations and forks; may ask: yes; may repeat: no"
        ),
        "asks the service, then a person; may ask: yes; may repeat: no",
    ]
