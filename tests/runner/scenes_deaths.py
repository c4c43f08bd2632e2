"""Scenes that end by SIGKILL, at a point that each of them names."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import runner
from tests.runner import stage


def die() -> None:
    """Die here and now."""
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at(event: str, name: str) -> None:
    """Die as soon as the system is asked to do this to a file of this name."""

    def audit(what: str, given: tuple[Any, ...]) -> None:
        if what == event and Path(str(given[0])).name.startswith(name):
            die()

    sys.addaudithook(audit)


def dies_writing(runs: str, place: str, at: str, effect: str) -> None:
    """A tool writes `a.txt`; the process dies once that is intended, half done, or done and not yet said."""
    if at == "intended":
        _die_at("open", ".refold-tmp-")
    if at == "half":
        _die_at("os.rename", ".refold-tmp-")

    def act(call: runner.Call) -> None:
        call.workspace.write_text("a.txt", "new")
        die()

    tool = runner.tool(effect="once" if effect == "once" else "idempotent")(act)
    stage.start([runner.calls(("act", {}))], tool, runs=Path(runs), workspace=place)


def dies_deleting(runs: str, place: str, at: str) -> None:
    """The same for a deletion."""
    if at == "intended":
        _die_at("os.remove", "a.txt")

    @runner.tool(effect="once")
    def act(call: runner.Call) -> None:
        call.workspace.delete("a.txt")
        die()

    stage.start([runner.calls(("act", {}))], act, runs=Path(runs), workspace=place)


def dies_in_its_tool(runs: str, resumes: int = 10, *, dies: bool = True) -> str:
    """A run whose tool kills it in every life."""

    @runner.tool(effect="idempotent")
    def act() -> str:
        if dies:
            die()
        return "survived"

    agent = stage.agent([runner.calls(("act", {})), "over"], act, limits=runner.Limits(resumes=resumes))
    try:
        return stage.finished(stage.on(runs, agent))
    except runner.RunStopped as stopped:
        return stopped.reason


def spends(runs: str, limits: dict[str, Any], *, dies: bool) -> str:
    """A model that takes a dollar for each reply and, when asked to, dies with the reply in its hand."""

    class Model(runner.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            reply = await super().ask(request)
            if dies:
                die()
            return reply

    @runner.tool(effect="reads")
    def look() -> str:
        return "x"

    model = Model([runner.calls(("look", {}), dollars=1.0)] * 20, most=runner.Bound(dollars=1.0))
    agent = runner.Agent(model=model, tools=[look], limits=runner.Limits(**limits))
    try:
        stage.on(runs, agent)
    except runner.RunStopped as stopped:
        return stopped.reason
    return "no limit"


def dies_after_a_yes(runs: str, *, approve: bool) -> str:
    """A run that pauses for a yes, and dies in the tool that got it."""

    @runner.tool(effect="idempotent", approval=True)
    def act() -> None:
        die()

    outcome = stage.on(runs, stage.agent([runner.calls(("act", {}))], act))
    return type(outcome).__name__ if not approve else "alive"


def answers_and_dies(runs: str, question: str) -> None:
    """Say yes, and die before anything else."""
    runner.approve("r", question, "olga", runs=runs)
    die()


def dies_in_its_backoff(runs: str, failures: int) -> None:
    """A model that fails, and a death in the wait after so many failures."""

    class Clock(stage.Ticking):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if len(self.slept) == failures:
                die()

    stage.start([runner.ModelError("busy")], runs=Path(runs), clock=Clock())


def dies_at_its_summary(runs: str, asks: str, when: str) -> str:
    """A run that dies with its summary in its hand, or once that is saved."""

    class Model(runner.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            stage.note(asks, request.purpose)
            reply = await super().ask(request)
            if request.purpose == "summary" and when == "before":
                die()
            return reply

    def policy(messages: Sequence[runner.Message], *_: object) -> runner.Summarise | None:
        return runner.Summarise(3) if len(messages) == 5 else None

    def watch(state: runner.State, _events: object) -> None:
        if state.summary is not None and when == "after":
            die()

    @runner.tool(effect="reads")
    def look() -> str:
        return "x"

    agent = runner.Agent(model=Model([*[runner.calls(("look", {}))] * 4, "over"]), tools=[look], context=policy)
    return stage.finished(stage.on(runs, agent, watch=watch))
