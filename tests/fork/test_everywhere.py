"""Wherever a run is forked, an effect is made once: by its fork, and in random histories by what the fence holds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replay
import runner
from tests.decide.story import Line
from tests.decide.walks import calls, results, walks
from tests.decide.world import World
from tests.fork import scenes
from tests.fork.scenes import Shop

SCRIPT = (
    runner.calls(("look", {"what": "a"}), ("put", {"what": "a"})),
    runner.calls(("pay", {"invoice": "i7", "ref": "x"}), ("send", {"to": "ada"}), ("bell", {"times": 1})),
    runner.calls(("sign", {"what": "a"}), ("pay", {"invoice": "i8", "ref": "x"})),
    "over",
)
EFFECTS = {"put a", "pay i7", "send ada", "bell 1", "sign a", "pay i8"}


def begun(runs: Path, lost: str) -> Shop:
    """A run of the script in which the reply of one effect is lost; it ends, or waits for a person about that."""
    shop = Shop()
    shop.silent = {lost}
    person = None if lost == "bell 1" else shop.truth
    scenes.start(shop, *SCRIPT, runs=runs, on_question=person)
    return shop


LOST = ("bell 1", *(pytest.param(lost, marks=pytest.mark.full) for lost in ("", "send ada", "pay i7", "put a")))


@pytest.mark.parametrize("lost", LOST)
def test_a_run_forked_at_any_line_makes_every_effect_once(tmp_path: Path, lost: str) -> None:
    """The model says the same again, a person answers what is asked truthfully: nothing is done twice, nothing left."""
    begun(tmp_path / "whole", lost)
    lines = len(scenes.lines(tmp_path / "whole", "p"))
    assert lines > 7
    for at in range(1, lines):
        runs = tmp_path / f"{at}"
        shop = begun(runs, lost)
        runner.fork("p", at=at, runs=runs, new="f", clock=scenes.Still())
        agent = shop.agent(*SCRIPT)
        done = runner.resume_sync("f", agent, runs=runs, on_question=shop.truth, clock=scenes.Still())
        assert isinstance(done, runner.Finished), at
        once = dict.fromkeys(EFFECTS, 1)
        assert shop.done == (once if lost != "put a" else {**once, "put a": shop.done["put a"]}), at
        told = runner.retrace("f", agent, runs=runs)
        assert told.divergence is None, at


@settings(max_examples=40)
@given(walks(), st.integers(min_value=0))
def test_the_fence_of_a_random_history_holds_what_happened_behind_the_line_and_nothing_that_did_not(
    world: World, drawn: int
) -> None:
    """An effect that is neither in the fork's own history nor open there must be in its fence (the truth is known)."""
    lines = world.story.lines
    seq = drawn % len(lines)
    fork = replay.fork(lines, seq, run="f", at=world.story.now, host="h", pid=1)
    state = fork.state
    own = {m.call for said in state.messages if isinstance(said, replay.Answered) for m in said.results}
    own |= {c.result.call for c in state.calls if c.result is not None}
    fenced = {f.call: f for f in state.fence}
    for call in (c for c in world.service.acted if calls(world)[c].tool != "look"):  # what reads does nothing
        assert call in own or call in state.open or call in fenced, call
    for call, effect in fenced.items():
        happened = call in results(world) and results(world)[call].how in replay.HAPPENED
        assert effect.happened == happened
        assert call not in own
        if effect.happened:
            assert world.service.acted.get(call, 0) > 0
    assert not state.busy
    assert state.phase in ("model", "tools")
    assert not state.waiting


@settings(max_examples=20)
@given(walks(), st.integers(min_value=0))
def test_a_fork_of_a_random_history_folds_to_its_state_and_retraces(world: World, drawn: int) -> None:
    """What is on disk is what `fork` said, and the code that wrote the parent finds its own decisions in it."""
    lines = world.story.lines
    seq = drawn % len(lines)
    fork = replay.fork(lines, seq, run="f", at=world.story.now, host="h", pid=1)
    last = lines[seq]
    shared = [*lines[:seq], Line(seq, last.life, last.at, last.events[: fork.keep])]
    opening = Line(seq + 1, last.life + 1, world.story.now, [msgspec.Raw(replay.encode(fork.event))])
    whole = [*shared, opening]
    assert replay.load(whole) == fork.state
    told = replay.retrace(whole, lambda state, now: runner.decide(world.story.agent, state, now))
    assert told.divergence is None
    assert told.seq == seq + 1
    assert replay.audit(whole).parent == "r"
