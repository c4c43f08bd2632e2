"""Somebody writes to a run, or answers what it asks, from another process at every point of a run, with a death after.

What was said is done once, or refused with a sentence; nothing else is done twice, or lost. A message that was left for
the run's holder, which says so, may come too late: then the run is over, and its holder warns. Parks and stops from
outside are the modes `mail` and `park` of the sweep. `SWEEP_EVERY=1` tries every point.
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import runner
from replay.events import MessageReceived, QuestionAnswered
from runner.testing._history import RUN, events
from runner.testing._plan import Plan
from runner.testing._play import play
from runner.testing._sweep import reword_reply
from runner.testing._verdict import judge
from runner.testing._world import World
from tests.testing import shop

EVERY = int(os.environ.get("SWEEP_EVERY", "9"))
DEATHS = (None, 1, 4)
"""Points after the action at which its process dies; None: it lives on."""
WORDS = "and wrap it well"


def write(runs: eventlog.Store) -> bool:
    """Write to the run; whether the log has it."""
    return runner.send(RUN, WORDS, "mae", runs=runs).written


def answer(runs: eventlog.Store) -> bool:
    """Say yes to the payment, asked for or not; whether the log has it."""
    return runner.approve(RUN, "1.0-approve", "mae", runs=runs).written


Action = Callable[[eventlog.Store], bool]


def done(action: Action, world: World) -> str:
    """Do something, and say what became of it: written, left for the run's holder, or refused with a sentence."""
    try:
        return "written" if action(world.others()) else "left"
    except (runner.RunError, eventlog.LogError) as refused:
        return f"refused: {type(refused).__name__}" if str(refused).strip() else "refused without a word"


@pytest.mark.parametrize("action", [write, answer])
def test_what_somebody_says_from_outside_at_any_point_is_done_once_or_refused(action: Action, tmp_path: Path) -> None:
    """The effects are those of a run to which nobody said anything, also where its process dies soon after."""
    script = (shop.PAYS, "paid", "paid", "paid")
    plan = Plan(**shop.swept(*script), reword=reword_reply, root=tmp_path)
    baseline, counts = plan.baseline(), Counter[str]()
    for at, after in itertools.product(range(0, len(baseline.points), EVERY), DEATHS):
        said: list[str] = []
        with plan.world(event=lambda world, said=said: said.append(done(action, world))) as world:
            play(world, [] if after is None else [at + after], happens=[at])
            history = events(world.family())
            came = sum(isinstance(event, MessageReceived) for event in history)
            world.sent = (said == ["written"] and action is write) or came > 0
            found = judge(world, baseline, id=f"{action.__name__}:{at}/{after}", mode="outside", first=str(at))
        assert (found.why, found.unfinished, world.how) == ((), False, "finished"), (found, said)
        assert sum(isinstance(event, QuestionAnswered) for event in history) == 1, (found, said)
        assert came <= (action is write and not said[0].startswith("refused")), (found, said)
        later = [point for points in (world.passed[0][at + 1 :], *world.passed[1:]) for point in points]
        asked = any(point.startswith("model") and point.endswith("before") for point in later)
        assert action is answer or said != ["left"] or came or not asked, (found, "its next request took it not")
        counts[said[0] if action is answer or came or said != ["left"] else "left, and too late"] += 1
    tried = f"{action.__name__}: {counts.total()} scenarios at every {EVERY}th of {len(baseline.points)} points"
    print(f"{tried}: {dict(counts)}")  # noqa: T201 (the figures)
    assert "refused without a word" not in counts
    assert counts["written"] + counts["left"] >= 1
    assert any(name.startswith("refused") for name in counts)
