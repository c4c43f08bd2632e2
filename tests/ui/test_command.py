"""`refold ui` in a process of its own: who has the address it prints may look, and resume the runs of its agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

import runner
from tests.cli import agents
from tests.support import stage


def test_the_command_serves_a_place_and_resumes_the_runs_of_its_agents(tmp_path: Path) -> None:
    """In the name that --as gave; the token is needed once."""
    runs = tmp_path / "runs"
    stage.asked(runner.start_sync(agents.paying, "x", runs=runs, run="r"))
    command = [sys.executable, "-m", "runner._cli", "ui", "--runs", str(runs), "--port", "0", "--as", "ann"]
    with subprocess.Popen(
        [*command, "--agent", "tests.cli.agents:paying"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[1]
            base = address.partition("/?")[0]
            with httpx.Client(base_url=base, timeout=60, follow_redirects=True) as client:
                assert client.get("/").status_code == 401
                assert "ann" in client.get(address).text
                page = client.get("/runs/r").text
                assert "Resume here" in page
                csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
                runner.approve("r", "1.0-approve", "bob", runs=runs)
                assert client.post("/runs/r/resume", data={"csrf": csrf}, headers={"Origin": base}).status_code == 200
                stage.within(60, lambda: runner.read_state("r", runs).phase == "done")
        finally:
            process.terminate()
