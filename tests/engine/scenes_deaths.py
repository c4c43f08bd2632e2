"""Scenes that end by SIGKILL, at a point that each of them names."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import eventlog
import replay.messages
import runner
import runner.testing
from eventlog import simdisk
from tests.support import stage


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

    tool = runner.tool(effect="non_idempotent" if effect == "non_idempotent" else "idempotent")(act)
    stage.start([runner.testing.tool_calls(("act", {}))], tool, runs=Path(runs), workspace=place)


def dies_deleting(runs: str, place: str, at: str) -> None:
    """The same for a deletion."""
    if at == "intended":
        _die_at("os.remove", "a.txt")

    @runner.tool(effect="non_idempotent")
    def act(call: runner.Call) -> None:
        call.workspace.delete("a.txt")
        die()

    stage.start([runner.testing.tool_calls(("act", {}))], act, runs=Path(runs), workspace=place)


def dies_in_its_tool(runs: str, resumes: int = 10, *, dies: bool = True) -> str:
    """A run whose tool kills it in every life."""

    @runner.tool(effect="idempotent")
    def act() -> str:
        if dies:
            die()
        return "survived"

    agent = stage.agent([runner.testing.tool_calls(("act", {})), "over"], act, limits=runner.Limits(resumes=resumes))
    try:
        return stage.finished(stage.on(runs, agent))
    except runner.Stopped as stopped:
        return stopped.reason


def spends(runs: str, limits: dict[str, Any], *, dies: bool) -> str:
    """A model that takes a dollar for each reply and, when asked to, dies with the reply in its hand."""

    class Model(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            reply = await super().ask(request)
            if dies:
                die()
            return reply

    @runner.tool(effect="reads")
    def look() -> str:
        return "x"

    model = Model([runner.testing.tool_calls(("look", {}), dollars=1.0)] * 20, most=runner.CostBound(dollars=1.0))
    agent = runner.Agent(name="agent", model=model, tools=[look], limits=runner.Limits(**limits))
    try:
        stage.on(runs, agent)
    except runner.Stopped as stopped:
        return stopped.reason
    return "no limit"


def dies_after_a_yes(runs: str, *, approve: bool) -> str:
    """A run that pauses for a yes, and dies in the tool that got it."""

    @runner.tool(effect="idempotent", approval=True)
    def act() -> None:
        die()

    outcome = stage.on(runs, stage.agent([runner.testing.tool_calls(("act", {}))], act))
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

    class Model(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            stage.note(asks, request.purpose)
            reply = await super().ask(request)
            if request.purpose == "summary" and when == "before":
                die()
            return reply

    def policy(messages: Sequence[replay.messages.Message], *_: object) -> runner.Summarise | None:
        return runner.Summarise(3) if len(messages) == 5 else None

    def watch(state: runner.State, _events: object) -> None:
        if state.summary is not None and when == "after":
            die()

    @runner.tool(effect="reads")
    def look() -> str:
        return "x"

    agent = runner.Agent(
        name="agent",
        model=Model([*[runner.testing.tool_calls(("look", {}))] * 4, "over"]),
        tools=[look],
        context=policy,
    )
    return stage.finished(stage.on(runs, agent, watch=watch))


SAID = {
    "answer-1.0-approve": b'{"kind":"answer","who":"ann","post":"m","question":"1.0-approve","verdict":"approve"}',
    "park-1": b'{"kind":"park","who":"ann","post":"m"}',
}
"""What somebody left in the inbox of a run of `paying`, and died."""


def paying() -> runner.Agent:
    """An agent that pays, once a person has said yes."""

    @runner.tool(approval=True)
    def pay() -> str:
        return "paid"

    return stage.agent([runner.testing.tool_calls(("pay", {})), "over"], pay)


class _Dying(eventlog.Disk):
    """A disk whose process dies by SIGKILL before the `nth` operation that changes something."""

    def __init__(self, nth: int) -> None:
        self.left = nth


def _deadly(verb: str) -> Any:
    def act(self: _Dying, *given: Any, **named: Any) -> Any:
        if verb != "open" or any(named.get(word) for word in ("write", "create", "new")):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(eventlog.Disk, verb)(self, *given, **named)

    return act


for _verb in simdisk.CHANGES:
    setattr(_Dying, _verb, _deadly(_verb))


def dies_while_it_says(runs: str, nth: int) -> None:
    """Answer and park a run in a process that dies on the way."""
    where = eventlog.Directory(runs, disk=_Dying(nth))
    runner.approve("r", "1.0-approve", "ann", runs=where)
    runner.park("r", "ann", runs=where)


def dies_while_it_takes(runs: str, nth: int) -> None:
    """Resume a run with a full inbox in a process that dies on the way."""
    with contextlib.suppress(runner.errors.Parked):
        runner.resume_sync("r", paying(), runs=eventlog.Directory(runs, disk=_Dying(nth)))
