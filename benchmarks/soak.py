"""Does a worker that lives for an hour give back what it takes: memory, descriptors, threads, objects, and its speed?

Two hundred runs at a time begin, end and are removed, again and again. One worker lives all the time; another process
carries a part of every cycle's runs and is killed while all of them are in the middle of a call. Some runs are parked,
compacted, resumed and pruned, some are large enough to compact themselves, some are followed. After every cycle each
run must have finished, each effect must have happened once, and each follower must have been given every line. Measured
is the process that lives, when it carries nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import eventlog
import replay
import runner
from benchmarks import arms, models, table

RUNS, TURNS, MIDDLE = 200, 8, 4
"""Runs of a cycle, calls of a run, and the call in which all runs wait for the death of the other process."""
PARKED, FOLLOWED, LARGE = 6, 4, 2
"""Runs of a cycle that are parked, compacted and resumed; that are followed; whose logs grow above a mebibyte."""
OURS = frozenset({"eventlog", "replay", "runner"})
TICK = 0.05
PATIENCE = 600.0
"""Seconds after which something that should have happened did not."""


class Service:
    """A service that knows keys: an effect is a file, named by what was wanted, that holds the key it came with."""

    def __init__(self, place: Path) -> None:
        self.place, self.gate = place, place.with_name("gate")

    async def middle(self) -> None:
        """Wait until the gate is open."""
        while not self.gate.exists():  # noqa: ASYNC110 (another process may open it)
            await asyncio.sleep(TICK)

    def act(self, what: str, key: str) -> None:
        """Take effect, once a key; another key for the same thing is a second effect, and is noted as one."""
        try:
            with (self.place / what).open("x", encoding="utf-8") as file:
                file.write(key)
        except FileExistsError:
            first = (self.place / what).read_text(encoding="utf-8")
            if first not in {key, ""}:  # empty: killed between the two
                (self.place / f"{what}-twice").touch()

    def happened(self) -> int:
        """How many effects there were."""
        return len(os.listdir(self.place))


def agent_of(service: Service, came: Callable[[str], None]) -> runner.Agent:
    """An agent that acts in every turn; `came` is told whenever something came back to be saved."""
    model = models.Model(TURNS, tool="act")
    small, large = models.texts(1_000)[0], models.texts(200_000, 1)[0]

    @runner.tool(effect="keyed", key_ttl=timedelta(days=1))
    async def act(at: str, call: runner.Call) -> str:  # noqa: ARG001 (as a model calls it)
        if call.id == f"{MIDDLE}.0":
            await service.middle()
        service.act(f"{call.run}-{call.id}", call.key)
        came(call.run)
        return large if call.run.endswith("-large") else small

    class Model(models.Model):
        """Knows by the request how far a run is, for it serves many."""

        async def ask(self, request: runner.Request) -> runner.Reply:
            self.asked = request.turn - 1
            came(request.run)
            return await super().ask(request)

    return models.agent(Model(model.turns, tool="act"), act)


@dataclass(frozen=True)
class Cycle:
    """What was there after a cycle, when nothing was carried, and how fast it went."""

    minute: float
    resident: int
    files: int
    threads: int
    tasks: int
    objects: Counter[str] = field(repr=False)
    p50: float
    p99: float
    held: int
    followed: int


def objects() -> Counter[str]:
    """How many objects of our types there are, of those that the collector of garbage knows."""
    gc.collect()
    types = Counter(type(one) for one in gc.get_objects())
    return Counter(
        {
            f"{kind.__module__}.{kind.__qualname__}": count
            for kind, count in types.items()
            if str(kind.__module__).partition(".")[0] in OURS
        }
    )


class Soak:
    """A place, the worker that lives, and the process that is killed."""

    def __init__(self, place: Path, runs: int) -> None:
        self.runs, self.service, self.count = place / "runs", Service(place / "effects"), runs
        self.runs.mkdir()
        self.service.place.mkdir()
        self.store = eventlog.store(self.runs)
        self.back: dict[str, float] = {}
        self.durable: list[float] = []
        self.agent = agent_of(self.service, self.came)
        self.followed = 0
        self.kept = Counter[str]()
        self.begun = time.monotonic()

    def came(self, run: str) -> None:
        """Note when something came back."""
        self.back[run] = time.perf_counter()

    def watch(self, state: replay.State, _events: Sequence[replay.Event]) -> None:
        """A save has returned: what came back last is durable."""
        if (back := self.back.pop(state.run, None)) is not None:
            self.durable.append(time.perf_counter() - back)

    async def cycle(self, number: int, worker: runner.Worker) -> Cycle:
        """Let the runs of a cycle begin and end."""
        names = [f"c{number}-{n}{'-large' if n < LARGE else ''}" for n in range(self.count)]
        other = await self._other()
        self.service.gate.unlink(missing_ok=True)
        followers = [asyncio.create_task(self._follow(run, worker)) for run in names[LARGE : LARGE + FOLLOWED]]
        for n, run in enumerate(names):
            if n % 2 or n in range(LARGE, LARGE + FOLLOWED):
                await worker.start(self.agent, "Act.", run=run)
            else:
                await asyncio.to_thread(runner.enqueue, self.agent, "Act.", runs=self.store, run=run)
        await self._until(lambda: self.service.happened() == self.count * (MIDDLE - 1))
        held = self.count - len(worker.active)
        parked = await asyncio.to_thread(self._parked, names[-PARKED:])
        other.kill()
        await asyncio.to_thread(other.wait)
        self.service.gate.touch()
        await self._until(lambda: not worker.active and self._rest(parked))
        for run in parked:
            await asyncio.to_thread(runner.compact, run, runs=self.store)
            await runner.resume(run, self.agent, runs=self.store, watch=self.watch)
        await asyncio.gather(*followers)
        await asyncio.to_thread(self._judge, names, parked, held)
        await forget_timers()
        return self._measured(held)

    async def _other(self) -> subprocess.Popen[bytes]:
        """A process with a worker of its own, once it is up."""
        command = [sys.executable, "-m", "benchmarks.soak", "--serve", str(self.runs.parent)]
        start = functools.partial(subprocess.Popen, command, cwd=arms.ROOT.parent, stdout=subprocess.PIPE)
        process: subprocess.Popen[bytes] = await asyncio.to_thread(start)
        assert process.stdout is not None
        with process.stdout as out:
            assert await asyncio.to_thread(out.readline) == b"up\n", "the other worker did not begin"
        return process

    def _parked(self, names: Sequence[str]) -> list[str]:
        """Park runs."""
        for run in names:
            runner.park(run, "olga", runs=self.store)
        return [*names]

    def _rest(self, parked: Sequence[str]) -> bool:
        """Whether every run is over, or parked."""
        infos = runner.list_runs(self.store)
        return all(
            info.status is not None and (info.status.phase == "done" or (info.run in parked and info.status.stopped))
            for info in infos
        )

    async def _follow(self, run: str, worker: runner.Worker) -> None:
        """Be given every line of a run once and in order, to its end."""
        started = await worker.start(self.agent, "Act.", run=run)
        seen = [told.seq async for told in started.events() if told.kind == "saved"]
        assert seen == [*range(1, len(seen) + 1)], (run, seen)
        lines = await asyncio.to_thread(self.store.read, run)
        assert len(lines.lines) == len(seen) + 1, run
        self.followed += len(seen)

    async def _until(self, there: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not await asyncio.to_thread(there):  # noqa: ASYNC110 (what other processes do, too)
                await asyncio.sleep(TICK)

    def _judge(self, names: Sequence[str], parked: Sequence[str], held: int) -> None:
        """Every run finished, every effect happened once. Remove the runs."""
        assert {runner.read_state(run, self.store).phase for run in names} == {"done"}
        assert held, "nothing was carried by the process that was killed"
        for run in [*names[:LARGE], *parked]:
            assert self.store.read(run, accept=lambda _: True).snapshot is not None, run
        wanted = sorted(f"{run}-{turn}.0" for run in names for turn in range(1, TURNS + 1))
        assert sorted(os.listdir(self.service.place)) == wanted
        for _, problem in self.store.prune({run: {} for run in parked}):
            assert problem is None, problem
        self.store.forget(datetime.now(UTC) + timedelta(days=1))
        for run in {*names} - {*parked}:
            shutil.rmtree(self.runs / run)
        for effect in wanted:
            (self.service.place / effect).unlink()

    def _measured(self, held: int) -> Cycle:
        """What is left in this process."""
        self.back.clear()
        took, self.durable = self.durable, []
        followed, self.followed = self.followed, 0
        if (found := objects()) != self.kept:  # most cycles leave the same: what is measured must not grow by it
            self.kept = found
        return Cycle(
            minute=(time.monotonic() - self.begun) / 60,
            resident=resident(),
            files=len(os.listdir("/proc/self/fd")) - 1,
            threads=threading.active_count(),
            tasks=len(asyncio.all_tasks()),
            objects=self.kept,
            p50=arms.quantile(took, 0.5),
            p99=arms.quantile(took, 0.99),
            held=held,
            followed=followed,
        )


async def forget_timers() -> None:
    """Have the loop drop the timers that were cancelled: it keeps a few of them, with what they would do."""
    loop = asyncio.get_running_loop()
    for timer in [loop.call_later(3600, print) for _ in range(1000)]:
        timer.cancel()
    await asyncio.sleep(0)


def resident() -> int:
    """The bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def soaked(place: Path, runs: int, goes_on: Callable[[Sequence[Cycle]], bool]) -> list[Cycle]:
    """Cycle after cycle with one worker, for as long as wanted; what was there after each."""
    soak, cycles = Soak(place, runs), list[Cycle]()
    async with runner.Worker([soak.agent], runs=soak.store, at_once=runs // 2, watch=soak.watch) as worker:
        while goes_on(cycles):
            cycles.append(await soak.cycle(len(cycles), worker))
            assert not worker.problems, worker.problems
    return cycles


async def serve(place: Path) -> None:
    """The worker that is killed."""
    agent = agent_of(Service(place / "effects"), lambda _: None)
    async with runner.Worker([agent], runs=place / "runs", at_once=RUNS):
        print("up", flush=True)
        await asyncio.Event().wait()


def rows_of(cycles: Sequence[Cycle], minutes: float) -> list[list[str]]:
    """A row for each sixth of the time."""
    rows = []
    for part in range(6):
        first, last = minutes * part / 6, minutes * (part + 1) / 6
        some = [one for one in cycles if first <= one.minute < last or (part == 5 and one.minute >= last)]
        if some:
            middle = functools.partial(_middle, some)
            rows.append(
                [
                    f"{first:.0f} to {last:.0f}",
                    f"{len(some)}",
                    f"{middle('resident') / 1e6:.1f}",
                    f"{min(one.files for one in some)} to {max(one.files for one in some)}",
                    f"{middle('threads'):.0f}",
                    f"{arms.middle([one.objects.total() for one in some]):,.0f}",
                    f"{middle('p50') * 1e3:.1f}",
                    f"{middle('p99') * 1e3:.1f}",
                ]
            )
    return rows


def _middle(cycles: Sequence[Cycle], what: str) -> float:
    return arms.middle([getattr(one, what) for one in cycles])


def main() -> None:
    """Answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve))
        return
    with arms.room() as place:
        end = time.monotonic() + given.minutes * 60
        cycles = asyncio.run(soaked(place, RUNS, lambda _: time.monotonic() < end))
        shutil.rmtree(place / "runs")
    settled = [one for one in cycles if one.minute >= given.minutes / 6]
    tenth = max(len(settled) // 10, 1)
    grown = [_middle(settled[-tenth:], what) / _middle(settled[:tenth], what) for what in ("resident", "p50", "p99")]
    times = len(cycles)
    did = (
        f"{times} cycles of {RUNS} runs, {TURNS} calls each: all finished, each effect happened once; {times} processes"
    )
    did += f" killed with {sum(one.held for one in cycles):,} runs, {times * PARKED:,} parked,"
    did += f" {times * (PARKED + LARGE):,} compacted, {sum(one.followed for one in cycles):,} lines followed"
    flat = "from the end of the first sixth to the end (medians of a tenth of the cycles): memory"
    flat += f" {grown[0]:.3f} times, p50 {grown[1]:.2f} times, p99 {grown[2]:.2f} times"
    head = ["minutes", "cycles", "memory MB", "descriptors", "threads", "objects of ours", "durable p50 ms", "p99"]
    rows = rows_of(cycles, given.minutes)
    table.report(
        "soak", "What does a worker keep that lives for long?", head, rows, notes=[did, flat], short=given.minutes < 60
    )


if __name__ == "__main__":
    main()
