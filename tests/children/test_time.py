"""What time it is for a family: the process that carries it says so, whoever writes into which log."""

from __future__ import annotations

from eventlog import Directory
from runner import Answer
from tests.children.scenes import children, lead, start
from tests.support.stage import NOON, Ticking


def test_what_a_hook_says_to_a_child_is_saved_at_the_time_of_the_run_that_asked(runs: Directory) -> None:
    """At another time the child's log would run ahead, and its parent would wait for what the child waits for."""
    clock = Ticking(NOON)

    def approved(_: object) -> Answer:
        return Answer("approve", "ann", always={"order": "ask a"})

    start(lead("ask a"), runs, clock=clock, on_question=approved).finished()
    (child,) = children(runs)
    assert {line.at for run in ("p", child) for line in runs.read(run).lines[1:]} == {NOON}
