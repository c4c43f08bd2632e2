"""Records: what programs are told are frozen dataclasses is none that is made when runner is imported."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import runner
from runner.testing import ScriptedModel
from tests.support import ROOT
from tests.support.unmeasured import environment

SUMMARISE = runner.SummariseAfter(9, keep=2)


def test_dataclasses_takes_a_record_for_one_of_its_own() -> None:
    """Its fields, a copy with others, all of it as a dictionary, and a class that derives from one."""
    assert dataclasses.is_dataclass(runner.SummariseAfter)
    assert [field.name for field in dataclasses.fields(SUMMARISE)] == ["tokens", "keep", "instructions"]
    assert dataclasses.replace(SUMMARISE, keep=3) == runner.SummariseAfter(9, 3)
    assert dataclasses.asdict(runner.KeepLast(4)) == {"messages": 4}

    @dataclasses.dataclass(frozen=True)
    class More(runner.KeepLast):
        other: int = 0

    assert (More(1, 2).messages, More(1, other=2).other) == (1, 2)


def test_a_record_is_called_as_its_signature_says() -> None:
    """`inspect` reads it, also of one whose objects are called themselves."""
    assert str(inspect.signature(runner.KeepLast)) == "(messages: int) -> None"
    assert list(inspect.signature(SUMMARISE).parameters) == ["messages", "summary", "usage"]
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(runner.Agent).parameters.values())


@pytest.mark.parametrize(
    "wrong",
    [
        runner.SummariseAfter,
        lambda: runner.SummariseAfter(1, 2, "", 4),  # type: ignore[call-arg]
        lambda: runner.SummariseAfter(1, tokens=1),  # type: ignore[misc]
        lambda: runner.SummariseAfter(keep=1, other=2),  # type: ignore[call-arg]
        lambda: runner.Agent("name", model=ScriptedModel([])),  # type: ignore[call-overload]
    ],
)
def test_a_record_refuses_arguments_that_it_does_not_take(wrong: Callable[[], Any]) -> None:
    """Missing ones, too many, the same twice, unknown ones, and by place what is given by name."""
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        wrong()


def test_a_record_is_a_frozen_value() -> None:
    """Equal ones are one key, copies are equal, and nothing of it is set or taken away."""
    assert {SUMMARISE, runner.SummariseAfter(9, 2)} == {SUMMARISE}
    others: list[object] = [runner.KeepLast(8), runner.TokenBudget(9), 9]
    assert runner.KeepLast(9) not in others
    assert pickle.loads(pickle.dumps(SUMMARISE)) == copy.deepcopy(SUMMARISE) == SUMMARISE  # noqa: S301 (ours)
    assert repr(runner.KeepLast(4)) == "KeepLast(messages=4)"
    with pytest.raises(dataclasses.FrozenInstanceError, match="keep"):
        SUMMARISE.keep = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="keep"):
        del SUMMARISE.keep
    match SUMMARISE:
        case runner.SummariseAfter(tokens, keep):
            assert (tokens, keep) == (9, 2)


def test_importing_runner_makes_no_dataclass() -> None:
    """Each takes longer than any other class: its methods are written as source and compiled."""
    code = (
        "import asyncio, msgspec, sys; had = 'dataclasses' in sys.modules; "
        "import runner; sys.exit('dataclasses' in sys.modules and not had)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, env=environment(), check=False, timeout=300).returncode == 0
