"""Runs of every shape: a retrace by their own agent finds nothing, and so does one of what is exported of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eventlog
import runner
from tests.golden.v1 import agents
from tests.retrace.histories import GOLDEN

FACTS = json.loads(GOLDEN.with_name("facts.json").read_text(encoding="utf-8"))
OF_ONE_AGENT = sorted(run for run, told in FACTS.items() if len(set(told["agents"])) == 1)


@pytest.mark.parametrize("run", OF_ONE_AGENT)
def test_a_run_of_every_shape_is_exported_and_still_goes_its_way(run: str, tmp_path: Path) -> None:
    """Torn, parked, forked, stopped, every rung of the ladder: whatever happened can be made a test of."""
    agent = agents.agent(FACTS[run]["agents"][0])
    told = runner.retrace(run, agent, runs=GOLDEN)
    assert (told.divergence, told.drift, told.decisions) == (None, (), FACTS[run]["decisions"])
    data, _ = runner.export(run, agent, runs=GOLDEN)
    path = tmp_path / "history.jsonl"
    path.write_bytes(data)
    again = runner.retrace_export(path, agent)
    assert (again.run, again.divergence, again.drift) == (told.run, None, ())
    assert (again.seq, again.decisions) == (eventlog.read(GOLDEN, run).lines[-1].seq, told.decisions)


def test_most_shapes_are_of_one_agent() -> None:
    """The others were carried on by other code, which is a divergence or not, as it happens."""
    assert len(OF_ONE_AGENT) > 30
