"""Runs of every shape: a retrace by their own agent finds nothing, and so does one of what is exported of them."""

import json
from pathlib import Path

import pytest

import eventlog
import runner
from tests.golden.facts import WORD_FIELDS
from tests.golden.v1 import agents
from tests.review.retrace.histories import GOLDEN

pytestmark = [pytest.mark.fault("an export that goes another way")]

FACTS = json.loads(GOLDEN.with_name("facts.json").read_text(encoding="utf-8"))
OF_ONE_AGENT = sorted(run for run, told in FACTS.items() if len(set(told["agents"])) == 1 and run != "program")


@pytest.mark.parametrize("run", OF_ONE_AGENT)
def test_a_run_of_every_shape_is_exported_and_still_goes_its_way(run: str, tmp_path: Path) -> None:
    """Torn, parked, forked, stopped, every rung of the ladder: whatever happened can be made a test of."""
    agent = agents.agent(FACTS[run]["agents"][0])
    told = runner.review.retrace(run, agent, runs=GOLDEN)
    assert (told.divergence, told.decisions) == (None, FACTS[run]["decisions"])
    assert {drift.part for drift in told.drift} <= WORD_FIELDS, "a sentence may have changed since"
    data, _ = runner.review.export(run, agent, runs=GOLDEN)
    path = tmp_path / "history.jsonl"
    path.write_bytes(data)
    again = runner.review.retrace_export(path, agent)
    assert (again.run, again.divergence, again.drift) == (told.run, None, ())
    assert (again.seq, again.decisions) == (eventlog.store(GOLDEN).read(run).lines[-1].seq, told.decisions)


def test_the_run_of_a_program_is_retraced_and_exported_with_no_agent() -> None:
    """Only its program can say what it waits for."""
    for look in (runner.review.retrace, runner.review.export):
        with pytest.raises(runner.BadAgent, match=r"run program is a program's \(python\)"):
            look("program", agents.agent("shop"), runs=GOLDEN)


def test_most_shapes_are_of_one_agent() -> None:
    """The others were carried on by other code, which is a divergence or not, as it happens."""
    assert len(OF_ONE_AGENT) > 30
