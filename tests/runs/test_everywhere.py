"""Wherever a run is forked, an effect is made once: by its fork, and in random histories by what the fork guard has."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replay
import runner
import runner.testing
from replay.messages import HAPPENED, ToolResults
from tests.runs import scenes
from tests.runs.scenes import Shop
from tests.support.random_walk import RandomWalk
from tests.support.story import Line
from tests.support.walks import calls, results, walks

SCRIPT = (
    runner.testing.tool_calls(("look", {"what": "a"}), ("put", {"what": "a"})),
    runner.testing.tool_calls(("pay", {"invoice": "i7", "ref": "x"}), ("send", {"to": "ada"}), ("bell", {"times": 1})),
    runner.testing.tool_calls(("sign", {"what": "a"}), ("pay", {"invoice": "i8", "ref": "x"})),
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
        told = runner.review.retrace("f", agent, runs=runs)
        assert told.divergence is None, at


@settings(max_examples=40)
@given(walks(), st.integers(min_value=0))
def test_the_fork_guard_of_a_random_history_has_what_happened_after_the_line_and_nothing_that_did_not(
    walk: RandomWalk, drawn: int
) -> None:
    """An effect that is neither in the fork's own history nor open there must be in its fence (the truth is known)."""
    lines = walk.story.lines
    seq = drawn % len(lines)
    fork = replay.fork(lines, seq, run="f", uid="f", at=walk.story.now, host="h", pid=1)
    state = fork.state
    own = {m.call for said in state.messages if isinstance(said, ToolResults) for m in said.results}
    own |= {c.result.call for c in state.calls if c.result is not None}
    guarded = {f.call: f for f in state.fork_guard}
    for call in (c for c in walk.service.acted if calls(walk)[c].tool != "look"):  # what reads does nothing
        assert call in own or call in state.in_doubt or call in guarded, call
    for call, effect in guarded.items():
        happened = call in results(walk) and results(walk)[call].how in HAPPENED
        assert effect.happened == happened
        assert call not in own
        if effect.happened:
            assert walk.service.acted.get(call, 0) > 0
    assert not state.busy
    assert state.phase in ("model", "tools")
    assert not state.waiting


@settings(max_examples=20)
@given(walks(), st.integers(min_value=0))
def test_a_fork_of_a_random_history_folds_to_its_state_and_retraces(walk: RandomWalk, drawn: int) -> None:
    """What is on disk is what `fork` said, and the code that wrote the parent finds its own decisions in it."""
    lines = walk.story.lines
    seq = drawn % len(lines)
    fork = replay.fork(lines, seq, run="f", uid="f", at=walk.story.now, host="h", pid=1)
    last = lines[seq]
    shared = [*lines[:seq], Line(seq, last.life, last.at, last.events[: fork.keep])]
    opening = Line(seq + 1, last.life + 1, walk.story.now, [msgspec.Raw(replay.encode(fork.event))])
    whole = [*shared, opening]
    assert replay.load(whole) == fork.state
    told = replay.retrace(whole, lambda state, now: runner.decide(walk.story.agent, state, now))
    assert told.divergence is None
    assert told.seq == seq + 1
    assert replay.audit(whole).parent == "r"
