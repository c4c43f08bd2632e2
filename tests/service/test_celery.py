"""Celery, with redis, late acknowledgements and a patience shorter than a task: what it runs twice happens once."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import runner
from tests.service import scenes
from tests.support import ROOT, stage

RUNS = 20


@pytest.fixture
def broker() -> Iterator[str]:
    """A redis server on a socket that only this user may use."""
    program = shutil.which("redis-server")
    if program is None:
        message = "there is no redis-server here: apt-get install redis-server"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    place = Path(tempfile.mkdtemp(prefix="refold-redis-"))
    given = {"port": "0", "unixsocket": f"{place}/s", "unixsocketperm": "700", "dir": str(place), "save": ""}
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as server:
        try:
            until(lambda: (place / "s").exists() or server.poll() is not None)
            assert server.poll() is None
            yield f"redis+socket://{place}/s"
        finally:
            server.kill()
    shutil.rmtree(place)


def until(ready: object, seconds: float = 180.0) -> None:
    """Wait for other processes."""
    end = time.monotonic() + seconds
    assert callable(ready)
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextlib.contextmanager
def working(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with two child processes; it and they die by SIGKILL at the end."""
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=CRITICAL"]
    command = [sys.executable, "-m", "celery", "-A", "tests.service.celery_app", "worker", "--concurrency=2", *quiet]
    env = {**os.environ, **environment, "PYTHONPATH": str(ROOT), "C_FORCE_ROOT": "1"}
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, start_new_session=True) as worker:
        try:
            yield worker
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)


@pytest.mark.full
@pytest.mark.early
@pytest.mark.fault("a queue delivers a job twice")
@pytest.mark.fault("death of a worker")
def test_what_celery_delivers_again_and_again_is_done_once(broker: str, runs: Path, tmp_path: Path) -> None:
    """A worker is killed with all its children; its tasks come back, some while the run is still carried."""
    effects = tmp_path / "effects"
    environment = {"BROKER": broker, "RUNS": str(runs), "EFFECTS": str(effects)}
    agent = scenes.acting(effects)
    names = [runner.enqueue(agent, stage.TASK, runs=runs, run=f"r-{number}") for number in range(RUNS)]
    send = "from tests.service.celery_app import carry_on; import sys; [carry_on.delay(run) for run in sys.argv[1:]]"
    env = {**os.environ, **environment, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", send, *names], env=env, check=True, timeout=120)
    with working(environment) as first, working(environment):
        until(lambda: len(scenes.effects_of(effects)) >= RUNS // 4)
        os.killpg(first.pid, signal.SIGKILL)
        with working(environment):
            until(lambda: all(runner.read_state(run, runs).phase == "done" for run in names))
    assert sorted(scenes.effects_of(effects)) == sorted(names)
    assert Counter(scenes.effects_of(f"{effects}-delivered"))["r-0"] > 1
