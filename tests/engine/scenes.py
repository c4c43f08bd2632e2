"""Scenes are played in processes of their own, and return what has a JSON form. Here: those in which nobody dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import eventlog
import runner
import runner.testing
from tests.engine import job
from tests.support import stage

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
        with contextlib.suppress(runner.errors.TurnLimit):
            stage.start(["no"], runs=runs, run="stopped", limits=runner.Limits(turns=0))
        if os.geteuid() == 0:
            for path in [Path(root), *Path(root).rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        closed = [*runs.iterdir(), runs]
        for path in closed:
            path.chmod(0o500)
        model = stage.scripted("another answer")
        try:
            answers = [_resumed(runs, run, runner.Agent(name="agent", model=model)) for run in ("done", "stopped")]
        finally:
            for path in reversed(closed):
                path.chmod(0o700)
        return [answers[0][1], answers[1][0], model.asked]


def resume(runs: str, run: str = "r") -> list[str]:
    """Resume a run with an agent that has nothing more to do; how that ended."""
    return _resumed(Path(runs), run, stage.agent(["over"] * 9))


def _resumed(runs: Path, run: str, agent: runner.Agent) -> list[str]:
    try:
        outcome = runner.resume_sync(run, agent, runs=runs)
    except (runner.RunError, eventlog.LogError) as error:
        return [type(error).__name__, f"{error} {error.hint}"]
    return [type(outcome).__name__, outcome.answer if isinstance(outcome, runner.Finished) else ""]


def one_of_many(runs: str, told: str, others: int) -> list[Any]:
    """Resume a run with many others; who gets it waits until all others were told."""

    @runner.tool(approval=True)
    def act() -> None:
        """Wait until everybody was told."""
        stage.within(15, lambda: len(list(Path(told).iterdir())) == others)

    try:
        outcome = runner.resume_sync("r", stage.agent([runner.testing.tool_calls(("act", {})), "over"], act), runs=runs)
    except eventlog.RunLocked as error:
        (Path(told) / f"{os.getpid()}").touch()
        return [type(error).__name__, str(error)]
    return [type(outcome).__name__, ""]


def forks_in_its_tool(runs: str) -> list[Any]:
    """A tool forks; the child tries to open the run, and to save a line through the parent's own log."""
    said: list[str] = []

    def child(call: runner.Call) -> str:
        try:
            runner.fork("r", at=1, runs=runs)
        except eventlog.RunLocked as error:
            try:
                call.workspace.write_text("a.txt", "mine")
            except eventlog.LogDead as dead:
                return f"{type(error).__name__} {type(dead).__name__}"
        return "opened"

    @runner.tool
    def act(call: runner.Call) -> str:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writer, child(call).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        said.extend(os.read(reader, 1000).decode().split())
        return "done"

    with tempfile.TemporaryDirectory() as place:
        outcome = stage.start([runner.testing.tool_calls(("act", {})), "over"], act, runs=Path(runs), workspace=place)
    return [*said, stage.finished(outcome)]


class _Parked:
    """An agent in the middle of something that lasts so many seconds."""

    def __init__(self, begun: str, what: str, lasts: float) -> None:
        def begin() -> None:
            Path(begun).touch()

        @runner.tool
        async def act_async() -> str:
            begin()
            await asyncio.sleep(lasts)
            return "done"

        @runner.tool
        async def act_stubborn() -> str:
            with contextlib.suppress(asyncio.CancelledError):
                begin()
                await asyncio.sleep(lasts)
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

        class Model(runner.testing.ScriptedModel):
            async def ask(self, request: runner.Request) -> runner.Reply:
                if what == "ask":
                    begin()
                    await asyncio.sleep(lasts)
                return await super().ask(request)

        tools = [act_async, act_stubborn, act_sync, act_wait, act_hook]
        names = {"blocking hook": "act_hook", "ask": "act_sync"}
        script: list[runner.Reply | str] = [runner.testing.tool_calls((names.get(what, f"act_{what}"), {})), "over"]
        self.agent = runner.Agent(name="agent", model=Model(script), tools=tools)


def _hook(begun: str, what: str, lasts: float) -> runner.OnQuestion:
    """Somebody who thinks about every question for so many seconds."""

    def blocking(_question: runner.Question) -> None:
        Path(begun).touch()
        time.sleep(lasts if what == "blocking hook" else 0)

    async def hook(question: runner.Question) -> None:
        blocking(question)
        await asyncio.sleep(lasts)

    return blocking if what == "blocking hook" else hook


def is_parked(runs: str, begun: str, what: str, lasts: float, grace: float, *, own: bool = False) -> str:
    """A run that is asked to park, or not, while something lasts; how it ended."""
    if own:
        signal.signal(signal.SIGTERM, lambda *_: print("own handler"))  # noqa: T201 (the scene's output)
    agent, hook = _Parked(begun, what, lasts).agent, _hook(begun, what, lasts)
    try:
        outcome = runner.start_sync(agent, "do it", runs=runs, run="r", grace=grace, on_question=hook)
    except runner.errors.Interrupted as stopped:
        return type(stopped).__name__
    return type(outcome).__name__


def two_are_parked(runs: str, begun: str) -> list[str]:
    """Two runs of one loop; how each ended."""

    async def both() -> list[str]:
        given = [_Parked(f"{begun}{n}", "async", 60).agent for n in (1, 2)]
        running = [runner.start(agent, "do it", runs=runs, run=f"r{n}", grace=0) for n, agent in enumerate(given, 1)]
        return [type(ended).__name__ for ended in await asyncio.gather(*running, return_exceptions=True)]

    return asyncio.run(both())


def handlers(runs: str) -> list[bool]:
    """Whether SIGTERM has its default handler before, while and after a run is active."""
    seen = [signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]

    @runner.tool(effect="reads")
    def act() -> str:
        seen.append(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
        return "done"

    stage.start([runner.testing.tool_calls(("act", {})), "over"], act, runs=Path(runs))
    return [*seen, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL]
