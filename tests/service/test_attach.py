"""Start or attach: the same call, made again, goes on with the run that it began."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
import runner.testing
from runner._service import attach
from tests.service import scenes
from tests.support import stage
from tests.support.forkserver import ForkServer


def test_the_same_call_again_gives_the_answer_and_asks_nobody(runs: Path) -> None:
    """A done run is its answer. A task is compared as it is stored."""
    model = stage.scripted("over")
    agent = runner.Agent(name="agent", model=model)
    first = runner.run_sync(agent, "do it \ud800", run="r", runs=runs)
    assert runner.run_sync(agent, "do it \ud800", run="r", runs=runs) == first
    assert (stage.finished(first), model.asked) == ("over", 1)


@pytest.mark.fault("death of a worker")
def test_after_a_death_the_same_call_goes_on(runs: Path, forks: ForkServer, tmp_path: Path) -> None:
    """The effect that had happened is found, and not repeated."""
    effects = tmp_path / "effects"
    assert forks.run(scenes.run, runs=runs, effects=effects, die=True).killed
    assert forks.run(scenes.run, runs=runs, effects=effects).value == ["Finished"]
    assert scenes.effects_of(effects) == ["r"]


@pytest.mark.fault("many resumers at once")
def test_many_processes_that_make_the_same_call_are_one_run(runs: Path, forks: ForkServer, tmp_path: Path) -> None:
    """One carries it on; the others are told that it is held, or give its answer."""
    effects, at = tmp_path / "effects", time.time() + 0.5
    crowd = [forks.begin(scenes.run, runs=runs, effects=effects, at=at) for _ in range(6)]
    ends = [tuple(one.end().value) for one in crowd]
    assert ("Finished",) in ends
    assert set(ends) <= {("Finished",), ("RunLocked",)}
    assert scenes.effects_of(effects) == ["r"]


@pytest.mark.parametrize("what", ["agent", "task", "after"])
def test_an_id_of_another_run_is_refused_and_what_differs_is_named(runs: Path, what: str) -> None:
    """Nothing is written, and no model is asked."""
    stage.start(["over"], runs=runs, run="before")
    given: dict[str, Any] = {"agent": stage.agent(["over"]), "task": stage.TASK, "after": None}
    runner.run_sync(given.pop("agent"), **given, run="r", runs=runs)
    before = stage.written(runs)
    given = {"agent": stage.agent(["no"]), **given}
    given[what] = {"agent": stage.agent(["no"], name="other"), "task": "another", "after": "before"}[what]
    with pytest.raises(runner.RunExists, match=f"r exists already in .*, and not with this {what}") as raised:
        runner.run_sync(given.pop("agent"), **given, run="r", runs=runs)
    assert raised.value.differs == (what,)
    assert stage.written(runs) == before


def test_a_run_that_stopped_at_a_limit_is_raised_and_not_carried_on(runs: Path) -> None:
    """Limits are not compared: whoever raises one resumes the run."""
    agent = stage.agent(["over"], limits=runner.Limits(turns=0))
    for given in (agent, agent, agent.replace(limits=runner.Limits())):
        with pytest.raises(runner.errors.TurnLimit):
            runner.run_sync(given, stage.TASK, run="r", runs=runs)
    assert stage.finished(runner.resume_sync("r", stage.agent(["over"]), runs=runs)) == "over"


def test_a_parked_run_is_carried_on_by_a_resume_of_it_alone(runs: Path) -> None:
    """A person holds it back, and the same call made again by a script is not that person."""
    agent = stage.agent(["over"])
    runner.enqueue(agent, stage.TASK, run="r", runs=runs)
    runner.park("r", "olga", runs=runs)
    with pytest.raises(runner.errors.Parked):
        runner.run_sync(agent, stage.TASK, run="r", runs=runs)
    assert stage.finished(runner.resume_sync("r", agent, runs=runs)) == "over"


def test_a_run_parked_just_before_it_is_opened_stays_parked(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is what stands in the log once it is held, not what was read before."""
    agent = stage.agent(["over"])
    runner.enqueue(agent, stage.TASK, run="r", runs=runs)
    read = attach.existing

    async def and_park(*given: Any, **options: Any) -> replay.State:
        found = await read(*given, **options)
        runner.park("r", "olga", runs=runs)
        return found

    monkeypatch.setattr(attach, "existing", and_park)
    with pytest.raises(runner.errors.Parked):
        runner.run_sync(agent, stage.TASK, run="r", runs=runs)
    assert runner.read_state("r", runs).resumes == 0


def test_a_paused_run_is_attached_to_and_goes_on_once_it_is_answered(runs: Path) -> None:
    """Every call says what it waits for."""

    @runner.tool(approval=True)
    def act() -> str:
        return "done"

    agent = stage.agent([scenes.CALL, "over"], act)
    first = runner.run_sync(agent, stage.TASK, run="r", runs=runs)
    assert runner.run_sync(agent, stage.TASK, run="r", runs=runs) == first
    runner.approve("r", stage.asked(first)[0].id, "olga", runs=runs)
    assert stage.finished(runner.run_sync(agent, stage.TASK, run="r", runs=runs)) == "over"


def test_a_run_is_attached_to_in_a_thread_while_others_share_the_loop(runs: Path) -> None:
    """A long log would hold all of them up."""
    threads: list[int] = []

    class Noting(eventlog.Directory):
        def read(self, run: str, **options: Any) -> Any:
            threads.append(threading.get_ident())
            return super().read(run, **options)

        def open(self, run: str, **options: Any) -> Any:
            threads.append(threading.get_ident())
            return super().open(run, **options)

    inner = stage.agent(["over"])
    runner.enqueue(inner, stage.TASK, run="r", runs=runs)

    @runner.tool(effect="reads")
    async def act() -> str:
        assert stage.finished(await runner.run(inner, stage.TASK, run="r", runs=Noting(runs))) == "over"
        return "done"

    stage.start([scenes.CALL, "over"], act, runs=runs, run="outer")
    assert len(threads) > 1
    assert threading.get_ident() not in threads


def test_an_enqueued_run_is_durable_and_nobody_begins_it(runs: Path) -> None:
    """The one who made it needs no model; its id is taken, and the same call attaches to it."""
    model = stage.scripted("over")
    agent = runner.Agent(name="agent", model=model)
    assert runner.enqueue(agent, stage.TASK, run="r", runs=runs) == "r"
    assert model.asked == 0
    with pytest.raises(runner.RunExists):
        runner.enqueue(agent, stage.TASK, run="r", runs=runs)
    assert stage.finished(runner.run_sync(agent, stage.TASK, run="r", runs=runs)) == "over"
