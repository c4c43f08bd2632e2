"""What is played in processes of their own; each function is a scene, its result must have a JSON form."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import eventlog
import runner
from tests.runner import job, stage

NOBODY = 65534


def sweep(root: str, first: int, step: int, again: int = 0) -> dict[str, Any]:
    """The sweep of the small job."""
    return job.swept(Path(root), first, step, again)


def points(root: str) -> list[str]:
    """The points of a life that does not die."""
    return job.live(Path(root), 0)


def read_only_done() -> list[Any]:
    """Resume a done run, and a stopped one, where this user may not write; root gives its rights up for that."""
    with tempfile.TemporaryDirectory() as root:
        runs = Path(root) / "runs"
        stage.start(["the answer"], runs=runs, run="done")
        with contextlib.suppress(runner.TurnLimit):
            stage.start(["no"], runs=runs, run="stopped", limits=runner.Limits(turns=0))
        if os.geteuid() == 0:
            for path in [Path(root), *Path(root).rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        closed = [*runs.iterdir(), runs]
        for path in closed:
            path.chmod(0o500)
        agent = stage.agent(["another answer"])
        try:
            answer = stage.finished(runner.resume_sync("done", agent, runs=runs))
            runner.resume_sync("stopped", agent, runs=runs)
        except eventlog.ReadOnly as error:
            return [answer, type(error).__name__, agent.model.asked]
        finally:
            for path in reversed(closed):
                path.chmod(0o700)
        return [answer, "resumed"]


def resume(runs: str, run: str = "r") -> list[Any]:
    """Resume a run with an agent that has nothing more to do; how that ended."""
    try:
        outcome = runner.resume_sync(run, stage.agent(["over"] * 9), runs=runs)
    except (runner.RunError, eventlog.LogError) as error:
        return [type(error).__name__, str(error)]
    return [type(outcome).__name__, outcome.answer if isinstance(outcome, runner.Finished) else ""]


def _die_at(event: str, name: str) -> None:
    """Die as soon as the system is asked to do this to a file of this name."""

    def audit(what: str, given: tuple[Any, ...]) -> None:
        if what == event and Path(str(given[0])).name.startswith(name):
            die()

    sys.addaudithook(audit)


def die() -> None:
    """Die here and now."""
    os.kill(os.getpid(), signal.SIGKILL)


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


def is_parked(runs: str, begun: str, what: str, lasts: float, grace: float, *, own: bool = False) -> str:
    """A run in the middle of something that lasts so many seconds; how it ended."""

    def begin() -> None:
        Path(begun).touch()

    @runner.tool
    async def act_async() -> str:
        begin()
        await asyncio.sleep(lasts)
        return "done"

    @runner.tool
    def act_sync() -> str:
        begin()
        threading.Event().wait(lasts)
        return "done"

    @runner.tool
    def act_wait() -> str:
        begin()
        raise runner.ToolFailed("busy", retry_after=lasts)

    @runner.tool(approval=True)
    def act_hook() -> str:
        return "done"

    async def hook(_question: runner.Question) -> None:
        begin()
        await asyncio.sleep(lasts)

    def blocking(_question: runner.Question) -> None:
        begin()
        time.sleep(lasts)

    class Model(runner.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            if what == "ask":
                begin()
                await asyncio.sleep(lasts)
            return await super().ask(request)

    if own:
        signal.signal(signal.SIGTERM, lambda *_: print("own handler"))  # noqa: T201 (the scene's output)
    tools = [act_async, act_sync, act_wait, act_hook]
    name = next((tool.name for tool in tools if tool.name.endswith(what.rpartition(" ")[2])), "act_sync")
    agent = runner.Agent(model=Model([runner.calls((name, {})), "over"]), tools=tools)
    on_question = blocking if what == "blocking hook" else hook
    try:
        outcome = runner.start_sync(agent, "do it", runs=runs, run="r", grace=grace, on_question=on_question)
    except runner.Interrupted as stopped:
        return type(stopped).__name__
    return type(outcome).__name__


def handlers(runs: str) -> list[bool]:
    """Whether SIGTERM has its default handler before, while and after a run is active."""
    seen = [signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]

    @runner.tool(effect="reads")
    def act() -> str:
        seen.append(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
        return "done"

    stage.start([runner.calls(("act", {})), "over"], act, runs=Path(runs))
    return [*seen, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]
