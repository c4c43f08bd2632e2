"""The console beside a worker: how soon the list answers, when a page hears of a save, what an open page costs.

Three processes on one machine: `refold ui`, a worker that carries 50 runs at a pace (its own run `live-00` says when
each of its saves had returned), and this one, which asks as a browser does. Each list that is timed reads the statuses
again: between two, more time passes than a list serves. For what a page costs, the other runs go as fast as they may,
and the page of `live-00` is open in every second of the slices that take turns.
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
from collections.abc import Iterator
from typing import Any, Self

import eventlog
import replay
import runner
from benchmarks import arms, listing, models, table
from runner.ui._listing import FRESH
from tests.support.postgres_server import Cluster

LIVE = 50
PACE = 250
"""Events a second of all live runs together: each waits for its model, as a run does."""
TOKEN = "t"  # noqa: S105 (of a server that lives as long as the benchmark)


async def _carried(place: str, count: int, pause: float, others: float) -> None:
    """Carry so many runs on and on; the first, `pause` a reply, says when each of its saves had returned."""

    @runner.tool(effect="reads")
    async def look(at: str) -> str:
        return at * 500

    saves = 0

    def watch(state: replay.State, _events: object) -> None:
        nonlocal saves
        saves += 1
        if state.run == "live-00":
            print(json.dumps([state.seq, time.time(), saves]), flush=True)

    def agent(seconds: float) -> runner.Agent:
        return models.agent(models.Model(10**9, think=lambda: asyncio.sleep(seconds)), look)

    agents = [agent(others if n else pause) for n in range(count)]
    await asyncio.gather(
        *(runner.start(one, "go", runs=place, run=f"live-{n:02}", watch=watch) for n, one in enumerate(agents))
    )


class Worker:
    """The process that carries runs: `saved` has when each line of `live-00` was durable, `saves` counts all."""

    def __init__(self, place: str, count: int, pause: float, others: float) -> None:
        given = [place, str(count), str(pause), str(others)]
        command = [sys.executable, "-m", "benchmarks.ui", "--carry", *given]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (ours)
        self.saved: dict[int, float] = {}
        self.saves: dict[float, int] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            seq, at, saves = json.loads(line)
            self.saved[seq], self.saves[at] = at, saves

    def rate(self, began: float, ended: float) -> float:
        """Saves a second of all runs between two times."""
        seen = [(at, saves) for at, saves in self.saves.items() if began < at < ended]
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])

    def __enter__(self) -> Self:
        _until(lambda: len(self.saved) > 5)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Console:
    """`refold ui` of a place, and somebody who looks at it."""

    def __init__(self, place: str) -> None:
        command = [sys.executable, "-m", "runner._cli", "ui", "--runs", place, "--port", "0", "--token", TOKEN]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 (ours)

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        self._host = self._process.stdout.readline().split("/")[2]
        answer = self._asked(f"/?token={TOKEN}")
        self._cookie = str(answer.headers["set-cookie"]).partition(";")[0]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _asked(self, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self._host, timeout=60)
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def see(self, path: str) -> tuple[float, str]:
        """A page, and the seconds until all of it was there."""
        began = time.perf_counter()
        text = self._asked(path, Cookie=self._cookie).read().decode()
        return time.perf_counter() - began, text

    @contextlib.contextmanager
    def open_page(self, run: str, heard: dict[int, float]) -> Iterator[None]:
        """The page of a run is open, and fetched as a browser does; `heard` gets when it was told of each line."""
        answer, closed = self._asked(f"/runs/{run}/events?after=0", Cookie=self._cookie), threading.Event()

        def listen() -> None:
            with contextlib.suppress(ValueError, OSError, AttributeError):
                for line in answer:
                    if closed.is_set():
                        return
                    if line.startswith(b"id: "):
                        heard.setdefault(int(line[4:]), time.time())

        def fetch() -> None:
            took = 0.0
            while not closed.wait(max(0.4, 9 * took)):  # as ui.js does after each save
                took = self.see(f"/runs/{run}")[0]

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


def _until(done: Any) -> None:
    end = time.monotonic() + 120
    while not done():
        if time.monotonic() > end:
            sys.exit("nothing was saved within two minutes")
        time.sleep(0.05)


def lists(place: str, count: int, times: int) -> list[float]:
    """Seconds of each list, with the live runs and without anything that was read before."""
    took = []
    with Worker(place, LIVE, 4 * LIVE / PACE, 4 * LIVE / PACE), Console(place) as console:
        for path, number in {"/": count, "/?live=yes": LIVE}.items():
            assert f"<small>{number:,}</small>" in console.see(path)[1]
        for number in range(times):
            time.sleep(FRESH + 0.05)
            took.append(console.see("/" if number % 2 else "/?page=2&text=look")[0])
    return took


def news(place: str, seconds: float) -> list[float]:
    """Seconds from a save's return in the worker until the page of its run, served by another process, was told."""
    heard: dict[int, float] = {}
    with Worker(place, 1, 0.4, 0.4) as worker, Console(place) as console:
        with console.open_page("live-00", heard):
            time.sleep(seconds)
        first = max(worker.saved) - int(seconds)
        return [heard[seq] - at for seq, at in worker.saved.items() if seq in heard and seq > first]


def cost(place: str, slices: int, seconds: float) -> list[float]:
    """Saves a second with the page open, to saves a second with it closed, of each pair of slices."""
    ratios = []
    with Worker(place, 8, 0.1, 0.0) as worker, Console(place) as console:
        for number in range(slices):
            rates = {}
            for is_open in (True, False) if number % 2 else (False, True):
                with console.open_page("live-00", {}) if is_open else contextlib.nullcontext():
                    began = time.time()
                    time.sleep(seconds)
                    rates[is_open] = worker.rate(began, time.time())
            ratios.append(rates[True] / rates[False])
    return ratios


def _rested(url: str, count: int) -> None:
    """Make runs at rest in a database: one that is done, and its row under so many names."""
    agent = models.agent(models.Model(0))
    runner.start_sync(agent, "Look at it.", runs=url, run="run-00000")
    store: Any = eventlog.store(url)
    columns = (
        "token, owner, since, expires, seq, sum, life, at, bytes, began, parent, status, agent, closed, wake, mail"
    )
    store.connections.rows(
        f"insert into refold.run (run, {columns}) select 'run-' || lpad(n::text, 5, '0'), {columns} "  # noqa: S608
        "from refold.run, generate_series(1, %s) as n",
        (count - 1,),
    )


@contextlib.contextmanager
def places() -> Iterator[Iterator[tuple[str, Any]]]:
    """Each store: its name, and what gives a place in it with so many runs at rest."""
    with contextlib.ExitStack() as left:

        def directory(count: int) -> str:
            room = left.enter_context(arms.room())
            listing.make(room, count)
            return str(room)

        def each() -> Iterator[tuple[str, Any]]:
            yield "directory", directory
            cluster = Cluster(power_safe=True)
            left.callback(cluster.close)

            def database(count: int) -> str:
                url = cluster.url(cluster.database())
                _rested(url, count)
                return url

            yield "PostgreSQL", database

        yield each()


def main() -> None:
    """Answer."""
    if "--carry" in sys.argv:
        place, count, pause, others = sys.argv[-4:]
        asyncio.run(_carried(place, int(count), float(pause), float(others)))
        return
    short = table.quick(__doc__)
    times, slices = (20, 3) if short else (60, 12)
    rows = []
    with places() as stores:
        for name, make in stores:
            for count in (1_000, 10_000):
                place = make(count - LIVE)
                took = lists(place, count, times)
                rows.append([f"{name}: a list of {count:,} runs, {LIVE} live, ms", *_ms(took)])
            rows.append([f"{name}: a save reaches an open page, ms", *_ms(news(make(1), times / 3))])
            ratios = cost(make(1), slices, 4.0)
            least = f"{arms.quantile(ratios, 0.05):.2f}"
            rows.append([f"{name}: saves with a page open to saves without", f"{arms.middle(ratios):.2f}", least])
    notes = [
        f"load of this machine's {os.cpu_count()} processors: {' '.join(f'{part:.1f}' for part in os.getloadavg())}"
    ]
    table.report(
        "ui", "What does the console cost?", ["what", "p50", "p95 (ratio: p5)"], rows, notes=notes, short=short
    )


def _ms(took: list[float]) -> list[str]:
    return [f"{arms.quantile(took, part) * 1000:,.0f}" for part in (0.5, 0.95)]


if __name__ == "__main__":
    main()
