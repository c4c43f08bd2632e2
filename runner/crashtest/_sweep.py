"""The sweep: a crash at every point of a run, and a second one during its resume (spec rows 26 and 31)."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

import runner
from runner.crashtest._cast import Again, Without
from runner.crashtest._judged import Base, Scenario
from runner.crashtest._plan import MODES, Mode, Plan
from runner.crashtest._swept import Swept, counted

W = TypeVar("W")
Progress = Callable[[int, int], None]
Job = tuple[Mode, str]


class WorkerFailed(runner.RunError):
    """A forked process of a sweep came to grief; `trace` says where, in its own words."""

    hint = "Sweep with jobs=1 to see it in this process."

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace

    def __str__(self) -> str:
        return f"a process of the sweep failed: {self.trace}"


def said_otherwise(reply: runner.Reply) -> runner.Reply:
    """The same intents in other words: another text before calls, arguments spelt anew, other provider ids."""
    if not reply.calls:
        return reply
    calls = tuple(
        msgspec.structs.replace(call, arguments=_respelt(call.arguments), provider_id=f"again-{call.provider_id}")
        for call in reply.calls
    )
    return msgspec.structs.replace(reply, text=f"As I meant to say: {reply.text}", calls=calls, raw="")


def _respelt(arguments: str) -> str:
    """The same JSON with its keys in another order and other spaces; what is no JSON stays as it is."""
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return arguments
    if isinstance(parsed, dict):
        parsed = dict(reversed(parsed.items()))
    return json.dumps(parsed, indent=1)


def sweep(  # noqa: PLR0913 (each option is one fact about the sweep)
    *,
    world: Callable[[Path], W],
    agent: Callable[[W], runner.Agent],
    task: str,
    effects: Callable[[W], Mapping[str, int]],
    modes: Sequence[Mode] = MODES,
    without: Collection[Without] = (),
    every: int = 1,
    pairs: int | Literal["all"] = 2,
    seed: int = 0,
    jobs: int = 1,
    only: str = "",
    again: Again = said_otherwise,
    progress: Progress | None = None,
) -> Swept:
    """Crash an agent everywhere, resume it, let it finish, and count what it did to the world.

    world     makes the outside world of one scenario, given an empty folder; it survives every simulated death. The
              run's workspace is `workspace` in that folder: made empty, unless this makes it
    agent     makes the agent for one life in that world, as a new process would
    task      what a run is started with
    effects   counts what happened in a world, by name: an undisturbed run's counts are what every scenario must leave
    modes     which kinds of trouble (see `MODES`), each a row of the result
    without   take `keys` away (a tool that is keyed becomes `once`), or `lookups`, or both
    every     try each so many-th of the points where a process can die; 1 is all of them
    pairs     how many second crashes follow each first one, drawn with `seed`, or `all` of them
    jobs      how many processes share the work; they are forked
    only      play the one scenario of this id; raises `NoSuchScenario`
    again     what the model says in mode `model` when it is asked for a reply that was lost
    progress  called with how many first points are done, and of how many

    Nothing sleeps: time is virtual, and so must be what tools wait for (`asyncio.sleep`, their timeouts). The agent
    must depend on nothing but its world and what it is asked: raises `NotRepeatable` when two undisturbed runs differ,
    and whatever kept an undisturbed run from its end.
    """
    with tempfile.TemporaryDirectory(prefix="refold-sweep-", dir=_memory()) as root:
        plan = Plan(world, agent, task, effects, without, pairs, seed, again, Path(root).resolve())
        base = plan.base()
        if only:
            found = plan.one(only, base)
        else:
            work = [(mode, key) for mode in modes for key in plan.firsts(mode, base, every)]
            found = list(_shared(plan, base, work, jobs, progress or _silent))
    seen = [mode for mode in MODES if mode in modes or only]
    taken = "+".join(sorted(without))
    rows = [counted(mode, taken, found) for mode in seen if not only or any(one.mode == mode for one in found)]
    return Swept(tuple(f"{at} {name}" for at, name in enumerate(base.points)), tuple(rows), tuple(found))


def _memory() -> str | None:
    """A directory in memory where the system has one: a simulated death loses nothing on any file system."""
    place = Path("/dev/shm")  # noqa: S108 (looked for, never relied on)
    return str(place) if os.access(place, os.W_OK | os.X_OK) else None


def _silent(done: int, of: int) -> None:
    """Nobody watches."""


def _shared(plan: Plan, base: Base, work: Sequence[Job], jobs: int, progress: Progress) -> Iterator[Scenario]:
    """Every scenario of the work, in its order whoever did it."""
    if jobs <= 1:
        for done, (mode, key) in enumerate(work):
            progress(done, len(work))
            yield from plan.scenarios(mode, key, base)
        progress(len(work), len(work))
        return
    context = multiprocessing.get_context("fork")  # so that a world and an agent may be closures
    ends: list[Connection] = []
    workers = []
    for part in range(jobs):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(plan, base, work[part::jobs], theirs, [*ends, ours]))
        worker.start()
        theirs.close()
        ends.append(ours)
        workers.append(worker)
    try:
        found = _gathered(ends, len(work), jobs, progress)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
    for number in range(len(work)):
        yield from found[number]


def _gathered(ends: list[Connection], of: int, jobs: int, progress: Progress) -> dict[int, list[Scenario]]:
    found: dict[int, list[Scenario]] = {}
    decode = msgspec.msgpack.Decoder(list[Scenario]).decode
    count = dict.fromkeys(ends, 0)
    parts = {end: part for part, end in enumerate(ends)}
    while len(found) < of:
        for end in wait(list(parts)):
            assert isinstance(end, Connection)
            try:
                came: bytes | str = end.recv()
            except EOFError:  # its share is done, or it died; then the last one leaves the loop without an end
                del parts[end]
                continue
            if isinstance(came, str):
                raise WorkerFailed(came)
            found[parts[end] + jobs * count[end]] = decode(came)
            count[end] += 1
            progress(len(found), of)
        if not parts and len(found) < of:
            raise WorkerFailed("a process of the sweep ended before its share was done")
    return found


def _work(plan: Plan, base: Base, work: Sequence[Job], end: Connection, others: Sequence[Connection]) -> None:
    """One forked process's share. `others` are ends that it inherited: with them open it would outlive its parent."""
    for other in others:
        other.close()
    try:
        for mode, key in work:
            end.send(msgspec.msgpack.encode(list(plan.scenarios(mode, key, base))))
        end.close()
    except Exception:  # noqa: BLE001 (it is raised where it can be seen)
        end.send(traceback.format_exc())
