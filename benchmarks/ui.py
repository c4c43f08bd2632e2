"""The console beside a worker: how soon the list answers, when a page hears of a save, what an open page costs.

Up to three processes on one machine: `refold ui`, a worker that carries runs on and on (its own run `live-00` says at
each of its saves how many there were, and what they took of the processor), and this one, which asks as a browser
does. Every list that is timed reads the statuses again. What a page costs is measured in slices that take turns, the
page open or closed: with worker and console each on a processor of its own, or with all of them to share, or with the
console in the worker's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import eventlog
import replay
import runner
from benchmarks import arms, listing, models, table
from eventlog import _status
from tests.support.postgres_server import Cluster

LIVE = 50
PACE = 250
"""Events a second of all live runs together, where lists are timed: each waits for its model, as a run does."""
BESIDE = 8
"""Runs where an open page's cost is measured: one at a pace, the others as fast as they may."""
TOKEN = "t"  # noqa: S105 (of a server that lives as long as the benchmark)
PROCESSORS = sorted(os.sched_getaffinity(0))
TOGETHER, APART = (PROCESSORS, PROCESSORS), (PROCESSORS[:1], PROCESSORS[1:] or PROCESSORS)
"""The processors of the worker, and those of the console and whoever looks."""


class Said(NamedTuple):
    """What the worker says at a save of `live-00`: of all runs the saves, the processor's seconds, function calls."""

    seq: int
    at: float
    saves: int
    processor: float
    calls: int


async def _carried(place: str, count: int, pause: float, others: float, how: str) -> None:
    """Carry so many runs on and on; the first, `pause` a reply, says what there was at each of its saves."""

    @runner.tool(effect="reads")
    async def look(at: str) -> str:
        return at * 500

    calls = saves = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    if how == "counted":
        threading.setprofile(called)
        sys.setprofile(called)

    def watch(state: replay.State, _events: object) -> None:
        nonlocal saves
        saves += 1
        if state.run == "live-00":
            print(json.dumps(Said(state.seq, time.time(), saves, time.process_time(), calls)), flush=True)

    def agent(seconds: float) -> runner.Agent:
        return models.agent(models.Model(10**9, think=lambda: asyncio.sleep(seconds)), look)

    async with asyncio.TaskGroup() as tasks:
        for n in range(count):
            one = agent(others if n else pause)
            tasks.create_task(runner.start(one, "go", runs=place, run=f"live-{n:02}", watch=watch))
        if how == "mounted":
            import uvicorn

            from runner import ui

            app = ui.app(place, token=TOKEN, who="ann")
            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none"))
            tasks.create_task(server.serve())
            while not server.started:  # noqa: ASYNC110 (it has no event for that)
                await asyncio.sleep(0.01)
            print(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/", flush=True)


class Process:
    """A process of ours and the first line that it prints."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)  # noqa: S603 (ours)
        assert self.process.stdout is not None
        self.out = self.process.stdout

    def bind(self, processors: Sequence[int]) -> None:
        """Keep it on these processors, with all its threads."""
        for thread in Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), processors)

    def processor(self) -> float:
        """The processor's seconds that it took."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.out.close()


class Worker(Process):
    """The process that carries runs; `said` has what it said, `host` where its own console is, if it has one."""

    def __init__(self, place: str, count: int, pause: float, others: float, how: str = "alone") -> None:
        super().__init__("benchmarks.ui", "--carry", place, str(count), str(pause), str(others), how)
        first = next(line for line in self.out if how != "mounted" or line.startswith("http"))
        self.host = first.split("/")[2] if how == "mounted" else ""
        self.said: list[Said] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.out:
            self.said.append(Said(*json.loads(line)))

    def between(self, began: float, ended: float) -> tuple[float, float, float]:
        """Of all runs between two times: saves a second, saves a second of the processor, calls a save."""
        seen = [said for said in [*self.said] if began < said.at < ended]
        first, last = seen[0], seen[-1]
        saves = last.saves - first.saves
        return (
            saves / (last.at - first.at),
            saves / (last.processor - first.processor),
            (last.calls - first.calls) / saves,
        )

    def __enter__(self) -> Self:
        end = time.monotonic() + 60
        while len(self.said) < 5:
            if time.monotonic() > end:
                sys.exit("nothing was saved within a minute")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.out.close()


class Console(Process):
    """`refold ui` of a place; here it keeps a list for no time, so that each one is read."""

    def __init__(self, place: str) -> None:
        super().__init__("benchmarks.ui", "--serve", "ui", "--runs", place, "--port", "0", "--token", TOKEN)
        self.host = self.out.readline().split("/")[2]


class Person:
    """Somebody who looks at a console as a browser does, without drawing what comes."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._cookie = ""
        self._cookie = str(self._asked(f"/?token={TOKEN}").headers["set-cookie"]).partition(";")[0]

    def _asked(self, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self._host, timeout=60)
        connection.request("GET", path, headers={"Cookie": self._cookie, **headers})
        return connection.getresponse()

    def see(self, path: str, **headers: str) -> tuple[float, str]:
        """A page, and the seconds until all of it was there."""
        began = time.perf_counter()
        text = self._asked(path, **headers).read().decode()
        return time.perf_counter() - began, text

    @contextlib.contextmanager
    def open_page(self, run: str, heard: dict[int, float]) -> Iterator[None]:
        """The page of a run is open; `heard` gets when it was told of each line."""
        after = self.see(f"/runs/{run}")[1].partition('data-line="')[2].partition('"')[0]
        answer, closed, told = self._asked(f"/runs/{run}/events?after={after}"), threading.Event(), threading.Event()

        def listen() -> None:
            with contextlib.suppress(ValueError, OSError, AttributeError):
                for line in answer:
                    if closed.is_set():
                        return
                    if line.startswith(b"id: "):
                        heard.setdefault(int(line[4:]), time.time())
                        told.set()

        def fetch() -> None:
            while not closed.is_set():  # as ui.js does after each save
                if told.wait(0.1):
                    told.clear()
                    took = self.see(f"/runs/{run}", **{"Refold-Again": "1"})[0]
                    closed.wait(max(0.4, 9 * took))

        threads = [threading.Thread(target=one) for one in (listen, fetch)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            closed.set()
            for thread in threads:
                thread.join()
            answer.close()


def lists(place: str, count: int, times: int) -> tuple[list[float], float]:
    """Seconds of each list, with the live runs, and the console's seconds of a processor for one."""
    with Worker(place, LIVE, 4 * LIVE / PACE, 4 * LIVE / PACE), Console(place) as console:
        person = Person(console.host)
        for path, number in {"/": count, "/?live=yes": LIVE}.items():
            assert f"<small>{number:,}</small>" in person.see(path)[1]
        took, used = [], console.processor()
        for number in range(times):
            time.sleep(0.1)
            took.append(person.see("/" if number % 2 else "/?page=2&text=look")[0])
        return took, (console.processor() - used) / times


class Cost(NamedTuple):
    """Of each pair of slices what it was with the page open to what it was with it closed; and how soon news came."""

    saves: list[float]
    per_processor: list[float]
    calls: list[float]
    console: list[float]
    news: list[float]


def cost(place: str, slices: int, seconds: float, processors: tuple[Sequence[int], Sequence[int]], how: str) -> Cost:
    """What an open page costs a worker."""
    found = Cost([], [], [], [], [])
    with contextlib.ExitStack() as left:
        worker = left.enter_context(Worker(place, BESIDE, 0.1, 0.0, how))
        console = worker if how == "mounted" else left.enter_context(Console(place))
        left.callback(os.sched_setaffinity, 0, PROCESSORS)
        person = Person(console.host)
        if how != "mounted":
            worker.bind(processors[0])
            console.bind(processors[1])
            os.sched_setaffinity(0, processors[1])
        for number in range(slices):
            got: dict[bool, tuple[float, float, float]] = {}
            for is_open in (True, False) if number % 2 else (False, True):
                heard: dict[int, float] = {}
                with person.open_page("live-00", heard) if is_open else contextlib.nullcontext():
                    began, took = time.time(), console.processor()
                    time.sleep(seconds)
                    got[is_open] = worker.between(began, time.time())
                    if is_open:
                        found.console.append((console.processor() - took) / seconds)
                        found.news.extend(heard[s.seq] - s.at for s in worker.said if s.at > began and s.seq in heard)
            for ratios, opened, closed in zip(found[:3], got[True], got[False], strict=True):
                ratios.append(opened / closed if closed else 1.0)
    return found


def _rested(place: str, count: int) -> None:
    """Make runs at rest: one that is done, and its files, or its row, under so many names."""
    store: Any = eventlog.store(place)
    runner.start_sync(models.agent(models.Model(0)), "Look at it.", runs=store, run="run-00000")
    if "://" not in place:
        first, last = Path(place) / "run-00000", store.read("run-00000").lines[-1]
        (status,) = [info.status for info in runner.list_runs(store)]
        assert status is not None
        for number in range(1, count):
            other = Path(place) / f"run-{number:05}"
            other.mkdir(mode=0o700)
            for file in first.iterdir():  # one log under many names: a list reads the head and the status alone
                if file.is_file() and file.name != "status":
                    (other / file.name).hardlink_to(file)
            _status.write(listing.NoSync(), other, other.name, last.seq, last.sum, status)
        return
    columns = (
        "token, owner, since, expires, seq, sum, life, at, bytes, began, parent, status, agent, closed, wake, mail"
    )
    store.connections.rows(
        f"insert into refold.run (run, {columns}) select 'run-' || lpad(n::text, 5, '0'), {columns} "  # noqa: S608
        "from refold.run, generate_series(1, %s) as n",
        (count - 1,),
    )


@contextlib.contextmanager
def places(*, short: bool) -> Iterator[Mapping[str, Any]]:
    """Each store: what gives an empty place in it. The short version has the directory alone."""
    with contextlib.ExitStack() as left:
        found: dict[str, Any] = {"directory": lambda: str(left.enter_context(arms.room()))}
        if not short:
            cluster = Cluster(power_safe=True)
            left.callback(cluster.close)
            found["PostgreSQL"] = lambda: cluster.url(cluster.database())
        yield found


def main() -> None:
    """Answer."""
    if "--carry" in sys.argv:
        carried, number, pause, others, how = sys.argv[-5:]
        asyncio.run(_carried(carried, int(number), float(pause), float(others), how))
        return
    if "--serve" in sys.argv:
        from runner._cli import main as serve
        from runner.ui import _listing

        _listing.FRESH = 0.0
        serve(sys.argv[2:])
        return
    short = table.quick(__doc__)
    rows: list[list[str]] = []
    with places(short=short) as stores:
        for name, make in stores.items():
            for count in (1_000,) if short else (1_000, 10_000):
                place = make()
                _rested(place, count - LIVE)
                took, used = lists(place, count, 10 if short else 25)
                rows.append([f"{name}: a list of {count:,} runs, {LIVE} live, ms", *_ms(took)])
                rows.append([f"{name}: what it takes of the console's processor, ms", f"{used * 1000:.0f}", ""])
            rows += _costs(name, make, short=short)
    notes = [
        f"load of this machine's {os.cpu_count()} processors: {' '.join(f'{part:.1f}' for part in os.getloadavg())}"
    ]
    table.report(
        "ui", "What does the console cost?", ["what", "p50", "p95 (ratio: p5)"], rows, notes=notes, short=short
    )


def _costs(name: str, make: Any, *, short: bool) -> Iterator[list[str]]:
    """What an open page costs, in rows."""
    slices, seconds = (2, 1.0) if short else (4, 1.2)
    apart = cost(make(), slices, seconds, APART, "alone")
    yield [f"{name}: a save reaches an open page, ms", *_ms(apart.news)]
    yield [f"{name}: the console's share of a processor with a page open", *_both(apart.console, 0.95)]
    yield _ratio(name, "saves a second of the worker's processor", apart.per_processor)
    yield _ratio(name, "saves a second, the console on another processor", apart.saves)
    if not short:
        shared = cost(make(), slices, seconds, TOGETHER, "alone")
        yield _ratio(name, "saves a second, all processors shared", shared.saves)
    yield _ratio(name, "function calls in the worker for a save", cost(make(), 2, 1.0, APART, "counted").calls)
    mounted = cost(make(), slices, seconds, TOGETHER, "mounted")
    yield _ratio(name, "saves a second of the processor, the console in the worker's process", mounted.per_processor)
    yield _ratio(name, "saves a second, the console in the worker's process", mounted.saves)


def _ratio(name: str, what: str, ratios: Sequence[float]) -> list[str]:
    return [f"{name}: page open to closed: {what}", *_both(ratios, 0.05)]


def _both(found: Sequence[float], part: float) -> list[str]:
    return [f"{arms.middle(found):.2f}", f"{arms.quantile(found, part):.2f}"]


def _ms(took: Sequence[float]) -> list[str]:
    return [f"{arms.quantile(took, part) * 1000:,.0f}" for part in (0.5, 0.95)]


if __name__ == "__main__":
    main()
