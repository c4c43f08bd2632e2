"""The story of a service: the web application of the guide, killed and drained under load, by real processes."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

import eventlog
import runner
from runner._service.worker import LOOK
from tests.service import application, scenes
from tests.support import stage
from tests.support.figures import FIGURES
from tests.support.forkserver import Child, ForkServer

Record = Callable[[str, object], None]
REFOLD = Path(sys.executable).with_name("refold")


class Service:
    """Server processes of one application, each at a port of its own, on one place for runs."""

    def __init__(self, forks: ForkServer, folder: Path, which: str) -> None:
        self.folder, self.runs, self.ports = folder, folder / "runs", list[int]()
        self._forks, self._which = forks, which
        self._alive: dict[int, Child] = {}

    def up(self, port: int | None = None) -> int:
        """Start one server, or another one at the port of one that ended."""
        port = port or application.free_port()
        self._alive[port] = self._forks.begin(application.serve, folder=self.folder, port=port, which=self._which)
        stage.within(120, lambda: application.listens(port))
        if port not in self.ports:
            self.ports.append(port)
        return port

    def end(self, port: int, number: int) -> float:
        """End the server at a port; the seconds that it took."""
        began, child = time.monotonic(), self._alive.pop(port)
        os.kill(child.pid, number)
        assert child.end().status == -number
        return time.monotonic() - began

    def end_all(self) -> None:
        """End what is left."""
        for port in [*self._alive]:
            self.end(port, signal.SIGKILL)

    def post(self, run: str) -> None:
        """Ask one of the servers for a run, as a client does that asks again until it is accepted."""
        for number in range(100):
            with suppress(httpx.TransportError):
                url = f"http://127.0.0.1:{self.ports[number % len(self.ports)]}/runs/{run}"
                assert httpx.post(url, content=stage.TASK, timeout=90).status_code == 202
                return
        raise AssertionError(run)

    def approve(self) -> None:
        """Approve whatever waits for a person."""
        for info in runner.list_runs(self.runs):
            for question in info.status.open_questions if info.status else ():
                assert "-approve" in question, question
                with suppress(runner.errors.AlreadyAnswered, runner.errors.NoSuchQuestion):
                    runner.approve(info.run, question, "olga", runs=self.runs)

    def came(self) -> Counter[str]:
        """How many runs were stopped, or are in which phase."""
        statuses = [info.status for info in runner.list_runs(self.runs)]
        return Counter((status.stopped or status.phase) if status else "unreadable" for status in statuses)

    def command(self, *words: str) -> None:
        """Run the command, which must succeed."""
        subprocess.run([REFOLD, *words, "--by", "olga", "--runs", self.runs], capture_output=True, check=True)


@pytest.fixture
def service(forks: ForkServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Service]:
    """The application with the agent `shop`, or with the one that a test names."""
    made = Service(forks, tmp_path, getattr(request, "param", "shop"))
    yield made
    made.end_all()


def test_a_service_takes_fifteen_lines_at_most() -> None:
    """Without the imports and the agent itself."""
    assert len(application.glue()) <= 15


@pytest.mark.full
@pytest.mark.fault("death of a worker")
def test_killed_thirty_times_and_drained_every_effect_happens_once(service: Service, record_property: Record) -> None:
    """Fifty runs in two processes: with charges, letters by a child process, a service that is busy, and approvals."""
    source = random.Random(3)  # noqa: S311 (a test's)
    for _ in range(2):
        service.up()
    names = [f"r-{number}" for number in range(50)]
    for name in names:
        service.post(name)
    service.command("stop", names[0])
    killed = 0
    drained = list[float]()
    for _ in stage.ticks(600):
        service.approve()
        if killed >= 30 and service.came() == {"done": 49, "StoppedByPerson": 1}:
            break
        if killed < 30:
            port = source.choice(service.ports)
            if killed % 10 == 5 and len(drained) <= killed // 10:
                drained.append(service.end(port, signal.SIGTERM))
            else:
                service.end(port, signal.SIGKILL)
                killed += 1
            service.up(port)
            service.post(source.choice(names[1:]))  # a client that asks again
            time.sleep(source.random() * 0.2)
    record_property(FIGURES, f"{killed} killed, drained in {', '.join(f'{took:.2f} s' for took in drained)}")
    assert service.came() == {"done": 49, "StoppedByPerson": 1}
    done = Counter(scenes.effects_of(service.folder / "effects"))
    assert max(done.values()) == 1
    effects = Counter(word.partition("-")[0] for word in done)
    assert effects["letter"] - 49 in (0, 1)
    assert (effects["charge"] - 2 * 49 in (0, 1, 2), effects["refund"] - 49 in (0, 1)) == (True, True)
    kinds = {question.kind for name in names for question in runner.read_state(name, service.runs).questions.values()}
    assert kinds == {"approve"}
    assert all(eventlog.store(service.runs).verify(name).ok for name in names)


@pytest.mark.full
@pytest.mark.parametrize("service", ["talker"], indirect=True)
def test_fifty_asks_that_a_leaving_process_let_end_are_paid_for_once(service: Service, record_property: Record) -> None:
    """They end within the grace; the next process goes on behind them."""
    port = service.up()
    names = [f"r-{number}" for number in range(50)]
    for name in names:
        service.post(name)
    took = service.end(port, signal.SIGTERM)
    record_property(FIGURES, f"drained in {took:.2f} s")
    service.up(port)
    stage.within(240, lambda: service.came() == {"done": 50})
    states = [runner.read_state(name, service.runs) for name in names]
    assert {(state.spent.lost_asks, state.turns, len(state.questions)) for state in states} == {(0, 3, 0)}


@pytest.mark.full
def test_an_approval_from_the_command_line_wakes_a_run_at_once(service: Service, record_property: Record) -> None:
    """No process has to be told: the bell is heard, long before all runs are looked at again."""
    service.up()
    service.post("r")
    stage.within(120, lambda: runner.read_state("r", service.runs).questions)
    (question,) = runner.read_state("r", service.runs).questions
    service.command("approve", "r", question)
    answered = time.monotonic()
    stage.within(120, lambda: "refund" in str(scenes.effects_of(service.folder / "effects")))
    took = time.monotonic() - answered
    record_property(FIGURES, f"woken in {took:.2f} s")
    assert took < LOOK / 2
