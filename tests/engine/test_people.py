"""Many people and many live runs at once, and processes that die while they say or take something: nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
from replay.events import QuestionAnswered, RunStopped
from runner.testing import tool_calls
from tests.engine import scenes_deaths
from tests.support import stage
from tests.support.forkserver import ForkServer

SECONDS = 60.0
RUNS = [f"run-{number}" for number in range(50)]


class Endless:
    """A model that calls `act` again in each turn."""

    name = "endless"

    def bound(self, _: runner.Request) -> runner.CostBound:
        """What an ask costs at most."""
        return runner.CostBound(input_tokens=1, output_tokens=1, dollars=0.0)

    def parameters(self) -> dict[str, Any]:
        """Nothing is set."""
        return {}

    async def ask(self, _: runner.Request) -> runner.Reply:
        """Call it."""
        return tool_calls(("act", {}))


def agent() -> runner.Agent:
    """An agent that asks a person in each turn, then takes a moment."""

    @runner.tool(approval=True)
    async def act() -> str:
        await asyncio.sleep(0.05)
        return "acted"

    return stage.agent([], act).replace(model=Endless())


class Person(threading.Thread):
    """Somebody who answers, stops and parks at random.

    `accepted` are the answers that were not refused, and whether the log had them then; else they lay in the inbox.
    """

    def __init__(self, who: str, runs: Path, until: float) -> None:
        super().__init__()
        self.who, self.runs, self.until = who, runs, until
        self.accepted: list[tuple[str, str, bool]] = []
        self.said = Counter[str]()
        self.problems: list[BaseException] = []
        self._draw = random.Random(who)  # noqa: S311 (what somebody does)

    def run(self) -> None:
        """Go on until the time is over."""
        while time.monotonic() < self.until:
            run = self._draw.choice(RUNS)
            try:
                self._say(run)
            except (runner.RunError, eventlog.RunLocked) as error:
                self.said[type(error).__name__] += 1
            except BaseException as error:  # noqa: BLE001 (it fails the test)
                self.problems.append(error)

    def _say(self, run: str) -> None:
        what = self._draw.choices(["answer", "park", "resume", "stop"], [60, 3, 10, 0.2])[0]
        if what == "answer":
            waiting = runner.read_state(run, self.runs).waiting
            for question in waiting[:1]:
                receipt = runner.approve(run, question.id, self.who, runs=self.runs)
                self.accepted.append((run, question.id, receipt.written))
        elif what == "resume":
            state = runner.read_state(run, self.runs)
            if state.stopped is not None and state.stopped.reason == "Parked":
                runner.resume_sync(run, agent(), runs=self.runs)
        else:
            {"park": runner.park, "stop": runner.stop}[what](run, self.who, runs=self.runs)
        self.said[what] += 1


@pytest.mark.full
@pytest.mark.fault("many people at once")
def test_what_eight_people_say_to_fifty_live_runs_in_a_minute_is_in_one_log_each_exactly_once(runs: Path) -> None:
    """Every answer that was accepted, under the name of who was told so, but one that lay there as its run ended."""
    until = time.monotonic() + SECONDS

    async def work() -> None:
        async with runner.Worker([agent()], runs=runs, at_once=50, grace=5) as worker:
            for run in RUNS:
                await worker.start(agent(), stage.TASK, run=run)
            people = [Person(who, runs, until) for who in "abcdefgh"]
            for person in people:
                person.start()
            for person in people:
                await asyncio.to_thread(person.join)
            found.extend(people)

    found: list[Person] = []
    asyncio.run(work())
    assert [problem for person in found for problem in person.problems] == []
    said = sum((person.said for person in found), Counter[str]())
    logged = {run: stage.events(runs, QuestionAnswered, run) for run in RUNS}
    over = {run for run in RUNS if runner.read_state(run, runs).over}
    late = 0
    for person in found:
        for run, question, written in person.accepted:
            who = [answer.who for answer in logged[run] if answer.id == question]
            came_late = not (who or written) and run in over
            late += came_late
            assert came_late or who == [person.who], (run, question)
    assert late <= len(over)
    assert sum(map(len, logged.values())) == sum(len(person.accepted) for person in found) - late
    assert min(said["answer"], said["park"], said["stop"]) > 0, said
    for run in RUNS:
        stops = [stop.request for stop in stage.events(runs, RunStopped, run) if stop.request]
        assert len(set(stops)) == len(stops)
        assert eventlog.store(runs).inbox(run) == ([], [])


@pytest.mark.full
@pytest.mark.fault("the death of a poster")
@pytest.mark.parametrize("side", ["says", "takes"])
def test_a_sigkill_at_any_operation_of_a_poster_or_a_holder_loses_no_request_and_takes_none_twice(
    forks: ForkServer, runs: Path, tmp_path: Path, side: str
) -> None:
    """Real processes, files and signals: an answer and a park, and who dies says or takes them."""
    stage.asked(runner.start_sync(scenes_deaths.paying(), stage.TASK, runs=runs, run="r"))
    if side == "takes":
        for name, request in scenes_deaths.SAID.items():
            eventlog.store(runs).post("r", name, request)
    shutil.copytree(runs, tmp_path / "before")
    deaths = 0
    for nth in range(1, 200):
        ended = forks.run(getattr(scenes_deaths, f"dies_while_it_{side}"), runs=runs, nth=nth)
        deaths += ended.killed
        with contextlib.suppress(runner.errors.AlreadyAnswered):
            runner.approve("r", "1.0-approve", "bob", runs=runs)
        with contextlib.suppress(runner.errors.NotStoppable):
            runner.park("r", "bob", runs=runs)
        with contextlib.suppress(runner.Stopped):
            stage.finished(runner.resume_sync("r", scenes_deaths.paying(), runs=runs))
        answers, stops = stage.events(runs, QuestionAnswered), stage.events(runs, RunStopped)
        assert len(answers) == 1
        assert len({stop.request for stop in stops}) == len(stops)
        assert side == "says" or [answers[0].who, stops[0].who] == ["ann", "ann"]
        assert eventlog.store(runs).inbox("r") == ([], [])
        shutil.rmtree(runs)
        shutil.copytree(tmp_path / "before", runs)
        if not ended.killed:
            break
    assert deaths > 20
