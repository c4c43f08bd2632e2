"""What can't work as it is given with a run, or to a worker, is refused in a sentence, and no run is made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import runner
import runner.testing
from runner import review
from tests.support import stage

GIVEN: list[tuple[dict[str, Any], str]] = [
    *(({"agent": value}, "agent is .*, not a runner.Agent") for value in (None, "shop", len)),
    *(({"task": value}, "task is .*, not text") for value in (None, 5, b"look")),
    *(({"labels": value}, "labels is .*, not a dictionary of texts") for value in (["a"], {"a": 1}, {1: "a"})),
    *(({name: "x"}, f"{name} is 'x', not a function") for name in ("on_question", "watch")),
    ({"workspace": 5}, "workspace is 5, not a path"),
    ({"clock": 3}, "clock is 3, not a runner.Clock"),
    *(({"grace": value}, "grace is .*, not a number of seconds from 0") for value in ("x", -1, float("nan"))),
]
RESUMED = [
    *(one for one in GIVEN if not {"task", "labels"} & {*one[0]}),
    ({"wait": "no"}, "wait is 'no', not 'sleep' or 'return'"),
]
WORKERS: list[tuple[dict[str, Any], str]] = [
    *(({"agents": value}, "agents is .*, not a list of agents") for value in (None, "shop", [len])),
    *(({"at_once": value}, "at_once is .*, not a whole number from 1") for value in (0, "x", 1.5)),
    ({"grace": -1}, "grace is -1, not a number of seconds from 0"),
    ({"watch": "x"}, "watch is 'x', not a function"),
]


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize(("given", "said"), GIVEN)
def test_a_start_with_what_cannot_work_leaves_no_run(runs: Path, given: dict[str, Any], said: str) -> None:
    """Nor does it end in whatever its use would have raised later."""
    options: dict[str, Any] = {"agent": stage.agent(["fine"]), "task": "look", "runs": runs, **given}
    with pytest.raises(runner.BadAgent, match=said):
        runner.start_sync(**options)
    assert runner.list_runs(runs) == []


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize(("given", "said"), RESUMED)
def test_a_resume_with_what_cannot_work_writes_nothing(runs: Path, given: dict[str, Any], said: str) -> None:
    """The run goes on with the next resume."""
    stage.start(["the answer"], runs=runs)
    before = stage.written(runs)
    with pytest.raises(runner.BadAgent, match=said):
        runner.resume_sync("r", **{"agent": stage.agent(["fine"]), "runs": runs, **given})
    assert stage.written(runs) == before


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize(("given", "said"), WORKERS)
def test_a_worker_that_cannot_work_is_refused(runs: Path, given: dict[str, Any], said: str) -> None:
    """One that carries nothing, or only fails at its end, would wait in silence."""
    with pytest.raises(runner.BadAgent, match=said):
        runner.Worker(**{"agents": [stage.agent(["fine"])], "runs": runs, **given})


TAKE_AN_AGENT: dict[str, Callable[[Path, Any], object]] = {
    "run": lambda runs, it: runner.run_sync(it, stage.TASK, run="r", runs=runs),
    "as_tool": lambda _, it: runner.as_tool(it),
    "guarantees": lambda _, it: review.guarantees(it),
    "preflight": lambda runs, it: review.preflight(runs, [it]),
    "retrace": lambda runs, it: review.retrace("r", it, runs=runs),
    "export": lambda runs, it: review.export("r", it, runs=runs),
    "retrace_export": lambda runs, it: review.retrace_export(runs / "export", it),
    "sweep": lambda _, it: _swept(agent=lambda _: it),
}


def _swept(**given: Any) -> object:
    fits = {"environment": len, "agent": len, "effects": len, "task": stage.TASK}
    return runner.testing.sweep(**{**fits, "environment": lambda _: None, **given})


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize("function", TAKE_AN_AGENT)
@pytest.mark.parametrize("it", [None, "shop", 5])
def test_what_is_no_agent_is_refused_by_whatever_takes_one(runs: Path, function: str, it: Any) -> None:
    """The error says what was given, and is none of whatever would have looked for a field first."""
    stage.start(["the answer"], runs=runs)
    exported, _ = review.export("r", stage.agent(["the answer"]), runs=runs)
    (runs / "export").write_bytes(exported)
    with pytest.raises(runner.BadAgent, match=f"{it!r}.*, not a (runner.Agent|list of agents)"):
        TAKE_AN_AGENT[function](runs, it)


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize("name", ["environment", "agent", "effects"])
def test_a_sweep_is_given_functions(name: str) -> None:
    """An agent in place of a function that makes one is the likely slip."""
    with pytest.raises(runner.BadAgent, match=rf"{name} is .*, not a function"):
        _swept(**{name: stage.agent(["fine"])})


@pytest.mark.fault("a wrong argument")
def test_a_function_that_makes_no_agent_leaves_the_other_runs_to_be_looked_at(runs: Path) -> None:
    """What it made is said of the run it was asked for."""
    runner.enqueue(stage.agent(["fine"]), stage.TASK, runs=runs, run="r")

    def made(_: runner.State) -> Any:
        return "shop"

    (found,) = review.preflight(runs, made)
    assert "agent is 'shop', not a runner.Agent" in found.issues[0].says


@pytest.mark.parametrize("run", [7, b"r", Path("r")])
def test_a_run_id_that_is_not_text_is_no_run_id(runs: Path, run: Any) -> None:
    """The error is the one that every id which can't work gets."""
    with pytest.raises(runner.BadRunId, match="not text"):
        stage.start(["fine"], runs=runs, run=run)


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda _: review.redact("x", "sk-.*"), "patterns is 'sk-.*', not several compiled regular expressions"),  # type: ignore[arg-type]
        (lambda _: runner.key(None, "1.0"), "of two texts, .* not of None and '1.0'"),  # type: ignore[arg-type]
        (lambda runs: review.audit("r", runs, before=cast("Any", "r")), "before is 'r', not an earlier audit"),
        (
            lambda runs: runner.list_runs(runs, before=cast("Any", ["r"])),
            r"before is \['r'\], not an earlier list of runs",
        ),
    ],
)
def test_what_only_looks_says_what_it_was_given(runs: Path, call: Callable[[Path], object], says: str) -> None:
    """No AttributeError from somewhere inside of it."""
    stage.start(["the answer"], runs=runs)
    with pytest.raises(TypeError, match=says):
        call(runs)
