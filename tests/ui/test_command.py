"""`refold ui` in a process of its own: who has the address it prints may look, and resume the runs of its agents."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx

import runner
from tests.cli import agents
from tests.cli.conftest import environment
from tests.support import stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def served(runs: Path, agent: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], str, httpx.Client]]:
    """The command with an agent, the address that it printed, and a client of it."""
    command = [sys.executable, "-m", "runner._cli", "ui", "--runs", str(runs), "--port", "0", "--as", "ann"]
    command += ["--agent", f"tests.cli.agents:{agent}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(**environ)) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[1]
            base = address.partition("/?")[0]
            with httpx.Client(base_url=base, timeout=60, follow_redirects=True) as client:
                yield process, address, client
        finally:
            process.kill()


def resumes(client: httpx.Client, run: str) -> None:
    """Press the button."""
    page = client.get(f"/runs/{run}").text
    assert "Resume here" in page
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    headers = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post(f"/runs/{run}/resume", data={"csrf": csrf}, headers=headers).status_code == 200


def test_the_command_serves_a_place_and_resumes_the_runs_of_its_agents(tmp_path: Path) -> None:
    """In the name that --as gave; the token is needed once."""
    runs = tmp_path / "runs"
    stage.asked(runner.start_sync(agents.paying, "x", runs=runs, run="r"))
    with served(runs, "paying") as (_, address, client):
        assert client.get("/").status_code == 401
        assert "ann" in client.get(address).text
        runner.approve("r", "1.0-approve", "bob", runs=runs)
        resumes(client, "r")
        stage.within(60, lambda: runner.read_state("r", runs).phase == "done")


def test_a_signal_lets_the_call_of_a_run_that_was_resumed_there_end(tmp_path: Path) -> None:
    """As in every process that carries a run; the console serves nobody meanwhile."""
    runs = tmp_path / "runs"
    runner.enqueue(agents.meeting, "meet me", runs=runs, run="r")
    with served(runs, "meeting", MEETING=str(tmp_path)) as (process, address, client):
        client.get(address)
        resumes(client, "r")
        stage.within(60, (tmp_path / "began").exists)
        process.send_signal(signal.SIGTERM)
        stage.within(60, lambda: is_refused(client))
        assert process.poll() is None
        (tmp_path / "go").touch()
        assert process.wait(timeout=60) == -signal.SIGTERM
    state = runner.read_state("r", runs)
    assert state.stopped is not None
    assert (state.stopped.reason, state.in_doubt, state.turns) == ("Interrupted", (), 1)


def is_refused(client: httpx.Client) -> bool:
    """Whether nobody listens any more."""
    try:
        client.get("/")
    except httpx.TransportError:
        return True
    return False
