"""SIGKILL at random in real processes of a plain program; `python -m tests.durable.kills` does it 200 times."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.full
@pytest.mark.fault("SIGKILL at random in a program with a loop of its own")
def test_a_program_that_is_killed_at_random_does_everything_once() -> None:
    """The bank and the post twenty times over; a person is asked only about the wire."""
    command = [sys.executable, "-m", "tests.durable.kills", "20", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
