"""Agents and scenes for the tests of a service; some scenes are played in processes of their own."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import runner
import runner.testing
from eventlog.postgres import Postgres
from tests.support import stage

CALL = runner.testing.tool_calls(("act", {}))


def acting(
    effects: str | Path,
    *,
    name: str = "agent",
    lasts: float = 0.0,
    die: bool = False,
    timeout: float = 60.0,
    may_end: Callable[[str], bool] = lambda _: True,
) -> runner.Agent:
    """An agent that acts once; the effect is noted in a file, before the process dies if it is to die."""

    @runner.tool(timeout=timeout)
    async def act(call: runner.Call) -> str:
        stage.note(effects, f"{call.run}")
        if die:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(lasts)
        while not may_end(call.run):  # noqa: ASYNC110 (another process decides)
            await asyncio.sleep(0.05)
        return "done"

    @act.lookup(visible_within=0)
    def acted(call: runner.Call) -> runner.Found | runner.Missing:
        return runner.Found("done") if call.run in effects_of(effects) else runner.Missing()

    return stage.agent([CALL, "over"], act, name=name)


def effects_of(path: str | Path) -> list[str]:
    """What was noted, one word for each effect."""
    return Path(path).read_text().split() if Path(path).exists() else []


def run(runs: str, effects: str, die: bool = False, at: float = 0.0) -> list[Any]:
    """`runner.run_sync` at a moment; how it ended."""
    agent = acting(effects, die=die, lasts=0.2)
    while time.time() < at:
        pass
    try:
        outcome = runner.run_sync(agent, stage.TASK, run="r", runs=runs)
    except runner.RunLocked as error:
        return [type(error).__name__]
    return [type(outcome).__name__]


def serve(runs: str, effects: str, which: str, grace: float = 2.0, lease: float = 0.0) -> list[str]:
    """A worker process, until SIGTERM; the problems it had. `lease`: of a database, in seconds."""
    place = Postgres(runs, lease=lease) if lease else runs

    async def main() -> list[str]:
        left = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, left.set)
        agents = [AGENTS[name](effects) for name in which.split()]
        async with runner.Worker(agents, runs=place, grace=grace) as worker:
            stage.note(f"{effects}-up", str(os.getpid()))
            await left.wait()
        return [f"{what}: {problem.error!r}" for what, problem in worker.problems.items()]

    return asyncio.run(main())


def patient(effects: str) -> runner.Agent:
    """An agent whose first attempt takes a minute, and whose next is quick: a repeat does nothing new."""

    @runner.tool(effect="idempotent")
    async def act(call: runner.Call) -> str:
        stage.note(effects, f"{call.run}-{call.n}")
        if call.n == 1:
            await asyncio.sleep(60)
        return "done"

    return stage.agent([CALL, "over"], act, name="patient")


def poison(_effects: str) -> runner.Agent:
    """An agent that kills its process."""

    @runner.tool(effect="idempotent")
    async def act() -> str:
        await asyncio.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    return stage.agent([CALL, "over"], act, name="poison")


def healthy(effects: str) -> runner.Agent:
    """An agent that takes many short steps."""

    @runner.tool(effect="idempotent")
    async def act() -> str:
        await asyncio.sleep(0.2)
        return "done"

    del effects
    return stage.agent([*[CALL] * 12, "over"], act, name="healthy")


def shop(effects: str) -> runner.Agent:
    """An agent with every kind of thing that a death may meet: a charge, a wait, an approval, a child process, a file.

    What a service would know is in a file; a charge and a letter can be looked up, and are never made twice.
    """

    def lookup(what: str) -> Any:
        def find(call: runner.Call) -> runner.Found | runner.Missing:
            known = f"{what}-{call.key}" in effects_of(effects)
            return runner.Found("done") if known else runner.Missing()

        return find

    @runner.tool
    async def charge(call: runner.Call) -> str:
        await asyncio.sleep(0.05)
        stage.note(effects, f"charge-{call.key}")
        await asyncio.sleep(0.05)
        return "done"

    @runner.tool
    def letter(call: runner.Call) -> str:
        time.sleep(0.1)
        subprocess.run(["sh", "-c", 'echo "$1" >> "$2"', "sh", f"letter-{call.key}", effects], check=True)
        return "done"

    @runner.tool(effect="reads", attempts=5)
    async def busy(call: runner.Call) -> str:
        if call.n < 3:
            message = "busy"
            raise runner.ToolFailed(message, retry_after=0.3)
        return "done"

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), approval=True)
    async def refund(call: runner.Call) -> str:
        if f"refund-{call.key}" not in effects_of(effects):  # the service knows the key
            stage.note(effects, f"refund-{call.key}")
        return "done"

    charge.lookup(visible_within=0)(lookup("charge"))
    letter.lookup(visible_within=0)(lookup("letter"))
    names = ["busy", "charge", "letter", "refund", "charge"]
    script = [*[runner.testing.tool_calls((name, {})) for name in names], "over"]
    return stage.agent(script, charge, letter, busy, refund, name="shop", limits=runner.Limits(resumes=10))


AGENTS = {"agent": acting, "patient": patient, "poison": poison, "healthy": healthy, "shop": shop}


def paused(runs: str, many: int) -> list[str]:
    """Begin runs that wait for an approval, fifty at a time; their phases."""

    @runner.tool(approval=True)
    def act() -> str:
        return "done"

    agent = stage.agent([CALL, "over"], act, name="shop")

    async def main() -> list[str]:
        ends: list[runner.Outcome] = []
        for first in range(0, many, 50):
            names = [f"r-{number}" for number in range(first, first + 50)]
            ends += await asyncio.gather(*(runner.start(agent, stage.TASK, runs=runs, run=name) for name in names))
        return sorted({type(end).__name__ for end in ends})

    return asyncio.run(main())


def idle(runs: str, seconds: float) -> list[float]:
    """A worker that has nothing to do: the share of a core that it takes, and the megabytes that it adds."""

    def megabytes() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    async def main() -> list[float]:
        before = megabytes()
        async with runner.Worker([shop("")], runs=runs) as worker:
            await asyncio.sleep(2)
            began, used = time.monotonic(), time.process_time()
            await asyncio.sleep(seconds)
            assert (worker.active, dict(worker.problems)) == ([], {})
            return [(time.process_time() - used) / (time.monotonic() - began), megabytes() - before]

    return asyncio.run(main())
