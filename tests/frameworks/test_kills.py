"""SIGKILL at random in real processes of each kind of program; `python -m tests.frameworks.kills` does it 200 times."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.frameworks.orders import ORDERS
from tests.support import ROOT


@pytest.mark.full
@pytest.mark.fault("SIGKILL at random in a program with a loop of its own")
@pytest.mark.parametrize("kind", ORDERS)
def test_a_program_that_is_killed_at_random_does_everything_once(kind: str) -> None:
    """No saved reply is asked for again, and a person is asked only about the wire."""
    command = [sys.executable, "-m", "tests.frameworks.kills", kind, "--kills", "12", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
