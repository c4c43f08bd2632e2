"""Golden histories fold, verify, audit and retrace as they did when they were made, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click.testing
import pytest
from msgspec import inspect

import eventlog
import replay
import runner
import runner.testing
from replay._event import EVENTS
from replay.events import (
    AttemptEnded,
    AttemptMarked,
    LookupAnswered,
    ModelAsked,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    ResultRecorded,
    RunStopped,
    WaitUntil,
)
from runner._cli import main
from runner.errors import STOPS
from tests.golden.facts import differences, facts
from tests.golden.v1 import agents
from tests.golden.writing import make

pytestmark = [pytest.mark.fault("an old log that a new version reads otherwise")]

VERSIONS = sorted(path for path in Path(__file__).parent.glob("v*") if path.is_dir())
FACTS: dict[str, tuple[Path, dict[str, Any]]] = {
    f"{version.name}/{run}": (version / "histories", told)
    for version in VERSIONS
    for run, told in json.loads((version / "facts.json").read_text(encoding="utf-8")).items()
}


def _events() -> list[replay.AnyEvent]:
    """Every event of every history."""
    return [
        replay.decode(raw)
        for name, (runs, _) in FACTS.items()
        for line in eventlog.store(runs).read(name.split("/")[1]).lines
        for raw in line.events
    ]


@pytest.mark.parametrize("name", FACTS)
def test_a_golden_history_comes_to_what_it_came_to(name: str) -> None:
    """A log outlives the version that wrote it: its bytes, its state, its findings and its decisions stay."""
    runs, was = FACTS[name]
    run = name.split("/")[1]
    assert (was["divergence"], was["drift"]) == (None, [])
    assert differences(was, facts(runs, run, was["agents"])) == []


def test_the_histories_hold_every_event_every_stop_and_every_kind_of_result() -> None:
    """A shape that is missing here may be lost unnoticed."""
    events = _events()
    assert {type(event) for event in events} >= set(EVENTS.values())
    assert {event.reason for event in events if isinstance(event, RunStopped)} == set(STOPS)
    for kind, field in (
        (ResultRecorded, "how"),
        (AttemptMarked, "effect"),
        (AttemptEnded, "did"),
        (LookupAnswered, "said"),
        (QuestionAnswered, "answer"),
        (QuestionAsked, "kind"),
        (WaitUntil, "why"),
        (PhaseChanged, "phase"),
        (ModelAsked, "purpose"),
    ):
        found = {getattr(event, field) for event in events if isinstance(event, kind)}
        assert found == _words(kind, field), kind


def _words(kind: type[replay.Event], field: str) -> set[str]:
    """The words that a field of an event may be."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    (found,) = (f.type for f in info.fields if f.name == field)
    assert isinstance(found, inspect.LiteralType)
    return {str(value) for value in found.values}


def test_a_difference_is_found_wherever_it_is_and_a_new_field_is_none() -> None:
    """The comparison itself must not be blind."""
    was = {"a": 1, "b": [{"c": None}], "d": [1]}
    assert differences(was, {**was, "new": 1}) == []
    assert differences(was, {"a": 1, "b": [{"c": None, "e": 1}], "d": [1]}) == []
    assert differences(was, {"a": 2, "b": [{"c": 0}], "d": [1, 2]}) == [
        "$.a was 1 and is 2",
        "$.b[0].c was None and is 0",
        "$.d was [1] and is [1, 2]",
    ]
    assert differences(was, {"b": [{}], "d": [1]}) == ["$.a is gone", "$.b[0].c is gone"]


def test_the_damaged_one_is_called_damaged() -> None:
    """It stands beside the run that was salvaged from it."""
    with pytest.raises(eventlog.LogDamaged):
        eventlog.store(VERSIONS[0] / "histories").read("damaged")


def test_the_reading_commands_work_on_old_histories_where_nothing_may_be_written() -> None:
    """They were made by another version, and have no lock."""
    runs = VERSIONS[0] / "histories"
    before = sorted(path for path in runs.rglob("*"))
    for words in (["ls"], ["show", "fork"], ["audit", "fork"], ["verify", "fork"], ["cat", "torn"]):
        done = click.testing.CliRunner().invoke(main, [*words, "--runs", str(runs)])
        assert done.exit_code == 0, done.output
    assert sorted(path for path in runs.rglob("*")) == before


def test_an_old_run_goes_on(tmp_path: Path) -> None:
    """What a version left unfinished the next one finishes."""
    shutil.copytree(VERSIONS[0] / "histories", tmp_path / "runs")
    agent = agents.agent("more turns").replace(model=runner.testing.ScriptedModel(["", "It is done."]))
    for run in ("stopped-turns", "stopped-model"):
        done = runner.resume_sync(run, agent.replace(limits=runner.Limits()), runs=tmp_path / "runs")
        assert isinstance(done, runner.Finished), run
    with pytest.raises(runner.errors.CannotContinue):
        runner.resume_sync("later", agent, runs=tmp_path / "runs")


@pytest.mark.full
def test_the_script_makes_the_same_bytes_each_time(tmp_path: Path) -> None:
    """The next version's histories are made by it: every shape, no chance, each good."""
    made = [make(tmp_path / which) for which in ("one", "two")]
    assert made[0] == made[1]
    names = {name.split("/")[1] for name in FACTS if name.startswith(VERSIONS[-1].name)}
    assert set(made[0]) | {"batch"} == names
    for path in (tmp_path / "one").rglob("*.jsonl"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
    for name, lives in made[0].items():
        assert facts(tmp_path / "one", name, lives)["state"]["run"] == name
