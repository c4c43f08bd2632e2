"""A fork: what it begins with, what becomes of its parent, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import eventlog
import replay
import runner
import runner.testing
from replay.events import ReplySaved, RunForked
from replay.values import StopReason
from tests.runs import scenes
from tests.runs.scenes import Shop
from tests.support import stage
from tests.support.file_logs import roll

LOOK = runner.testing.tool_calls(("look", {"what": "a"}))
PAY = runner.testing.tool_calls(("pay", {"invoice": "i7", "ref": "x"}))


def test_a_fork_has_its_parents_events_up_to_the_line_under_the_same_numbers_and_times(runs: Path, shop: Shop) -> None:
    """What was noted about line 4 of the one holds for line 4 of the other; the chain and the nonce are its own."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    whole = scenes.lines(runs, "p")
    for at in range(1, len(whole)):
        made = runner.fork("p", at=at, runs=runs, new=f"f{at}")
        if made.phase != "done":
            runner.stop(f"f{at}", "ann", runs=runs)
        lines = scenes.lines(runs, f"f{at}")
        header, old = lines[0].header, whole[0].header
        assert header is not None
        assert old is not None
        assert header.parent == eventlog.Parent("p", at, whole[at].sum)
        assert header.nonce != old.nonce
        assert [(x.seq, x.life, x.at) for x in lines[: at + 1]] == [(x.seq, x.life, x.at) for x in whole[: at + 1]]
        assert [x.events for x in lines[1:at]] == [x.events for x in whole[1:at]]
        assert lines[at].events == whole[at].events[: len(lines[at].events)]
        (forked,) = [replay.decode(raw) for raw in lines[at + 1].events]
        assert isinstance(forked, RunForked)
        assert (forked.run, forked.parent, forked.seq) == (f"f{at}", "p", at)
        assert eventlog.store(runs).verify(f"f{at}").ok
        assert replay.load(lines[: at + 2]) == made


def test_a_forks_state_is_the_line_with_its_outcomes_folded_and_its_intents_dropped(runs: Path, shop: Shop) -> None:
    """What had come back is known and paid for; what was about to happen is decided anew."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    at = scenes.seq_of(runs, "p", ReplySaved, 1)
    made = runner.fork("p", at=at, runs=runs, new="f")
    assert (made.run, made.parent, made.phase, made.turns) == ("f", "p", "tools", 2)
    assert [call.attempts for call in made.calls] == [()]
    assert (made.resumes, made.busy, made.in_doubt) == (0, False, ())
    assert made.spent.input_tokens == 200
    assert made == runner.read_state("f", runs)


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize("at", ["1", 1.5, None])
@pytest.mark.parametrize("dry", [False, True])
def test_a_line_that_is_no_number_is_named(runs: Path, shop: Shop, at: Any, *, dry: bool) -> None:
    """A program hands on what a form had."""
    scenes.start(shop, "over", runs=runs)
    with pytest.raises(runner.errors.NotForkable, match=f"at line {at!r}: a line is named by its number"):
        runner.fork("p", at=at, runs=runs, dry=dry)


def test_what_a_fork_would_be_is_said_without_making_it(runs: Path, shop: Shop) -> None:
    """With all that its guard will hold, those of earlier forks too; also of a run that a process holds."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    first = runner.fork("p", at=2, runs=runs, new="f")
    runner.stop("f", "ann", runs=runs)
    with eventlog.store(runs).open("p"):
        before = stage.written(runs)
        dry = runner.fork("p", at=2, runs=runs, dry=True)
        assert stage.written(runs) == before
    made = runner.fork("p", at=2, runs=runs, new="g")
    assert (dry.fork_guard, dry.in_doubt, dry.parent) == (made.fork_guard, made.in_doubt, "p")
    assert [effect.tool for effect in first.fork_guard] == [effect.tool for effect in dry.fork_guard] == ["pay"]
    with pytest.raises(runner.errors.NotForkable, match="g, a fork of the same history, can still go on"):
        runner.fork("p", at=2, runs=runs, dry=True)


def test_the_parent_is_stopped_for_good_and_says_what_goes_on_in_its_place(runs: Path, shop: Shop) -> None:
    """Two runs that go on from one history would each do what comes next."""
    with pytest.raises(runner.errors.TurnLimit):
        runner.start_sync(shop.agent(LOOK, PAY, limits=runner.Limits(turns=1)), "do it", runs=runs, run="p")
    runner.fork("p", at=2, runs=runs, new="f", who="ann")
    with pytest.raises(runner.errors.Forked, match="f goes on from its line 2, by ann") as stopped:
        runner.resume_sync("p", shop.agent(LOOK, PAY, "over"), runs=runs)
    assert "Resume the fork" in stopped.value.hint
    done = runner.resume_sync("f", shop.agent(LOOK, PAY, "over"), runs=runs)
    assert isinstance(done, runner.Finished)
    assert shop.done == {"pay i7": 1}


def test_a_done_parent_stays_done_and_nothing_is_written_to_it(runs: Path, shop: Shop) -> None:
    """Its answer is as good as before."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    before = scenes.lines(runs, "p")
    runner.fork("p", at=2, runs=runs, new="f")
    assert scenes.lines(runs, "p") == before
    assert runner.resume_sync("p", shop.agent(), runs=runs).run == "p"


def test_a_fork_of_the_last_line_of_a_done_run_gives_the_answer_again_without_the_model(runs: Path, shop: Shop) -> None:
    """The reply had come back at that line."""
    scenes.start(shop, LOOK, "over", runs=runs)
    last = scenes.lines(runs, "p")[-1].seq
    runner.fork("p", at=last, runs=runs, new="f")
    done = runner.resume_sync("f", shop.agent(), runs=runs)
    assert isinstance(done, runner.Finished)
    assert done.answer == "over"


def test_a_run_that_a_person_stopped_for_good_can_be_forked(runs: Path, shop: Shop) -> None:
    """The stop ends that run; going on from before it is another decision of a person."""
    scenes.start(shop, runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs)
    runner.stop("p", "ann", runs=runs)
    runner.fork("p", at=2, runs=runs, new="f")
    assert runner.read_state("p", runs).stopped == StopReason(reason="StoppedByPerson", final=True, detail="by ann")
    done = runner.resume_sync("f", shop.agent("over"), runs=runs)
    assert isinstance(done, runner.Finished)


@pytest.mark.parametrize("at", [0, 99])
def test_a_line_that_is_not_there_or_before_the_beginning_is_refused(runs: Path, shop: Shop, at: int) -> None:
    """Nothing is left behind, and the run goes on."""
    scenes.start(shop, runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs)
    with pytest.raises(replay.NoSuchLine) as refused:
        runner.fork("p", at=at, runs=runs, new="f")
    assert (refused.value.run, refused.value.seq) == ("p", at)
    assert eventlog.store(runs).runs() == ["p"]
    assert runner.read_state("p", runs).stopped is None


@pytest.mark.parametrize("dry", [False, True])
def test_an_id_that_is_taken_or_bad_leaves_the_parent_as_it_was(runs: Path, shop: Shop, dry: bool) -> None:
    """The parent is stopped only when nothing but the fork's name is missing; a look says the same."""
    scenes.start(shop, runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs)
    for new, error in (("p", eventlog.RunExists), ("../x", eventlog.BadRunId)):
        with pytest.raises(error):
            runner.fork("p", at=2, runs=runs, new=new, dry=dry)
    assert runner.read_state("p", runs).stopped is None


def test_a_run_that_a_process_holds_is_not_forked(runs: Path, shop: Shop) -> None:
    """Its next line may be an effect."""
    scenes.start(shop, runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs)
    with eventlog.store(runs).open("p"), pytest.raises(eventlog.RunLocked):
        runner.fork("p", at=2, runs=runs, new="f")


def test_a_salvaged_run_is_not_forked(runs: Path, shop: Shop) -> None:
    """What is missing of it may have happened, and no fork guard could have that."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    eventlog.store(runs).salvage("p", "s").close()
    with pytest.raises(runner.errors.NotForkable, match="salvaged"):
        runner.fork("s", at=2, runs=runs)


def test_a_run_with_events_of_a_later_version_is_not_forked(runs: Path, shop: Shop) -> None:
    """One of them may be an effect."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    with eventlog.store(runs).open("p") as log:
        log.append(log.at, [b'{"type":"from_tomorrow"}'])
    with pytest.raises(runner.errors.CannotContinue):
        runner.fork("p", at=2, runs=runs)


def test_a_run_that_never_began_is_not_forked(runs: Path) -> None:
    """There is nothing to go on from."""
    eventlog.store(runs).create("p", at=scenes.NOON, events=[]).close()
    with pytest.raises(runner.errors.NotStarted):
        runner.fork("p", at=0, runs=runs)


def test_an_id_of_its_own_is_made_like_that_of_a_new_run(runs: Path, shop: Shop) -> None:
    """It is never one that was used."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    made = runner.fork("p", at=2, runs=runs, clock=scenes.Still())
    assert made.run.startswith("shopper-20260101-")


def test_a_fork_of_a_parent_in_several_segments_keeps_the_numbers(runs: Path, shop: Shop) -> None:
    """Where the parent began a segment the fork has a line without events."""
    scenes.start(shop, runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs)
    with eventlog.store(runs).open("p") as log:
        roll(log)
    runner.approve("p", "1.0-approve", "ann", runs=runs)
    last = scenes.lines(runs, "p")[-1].seq
    assert scenes.lines(runs, "p")[last - 1].header is not None
    runner.fork("p", at=last, runs=runs, new="f")
    assert [x.seq for x in scenes.lines(runs, "f")] == list(range(last + 2))
    assert eventlog.store(runs).verify("f").ok
    done = runner.resume_sync("f", shop.agent("", "over"), runs=runs)
    assert isinstance(done, runner.Finished)
    assert shop.done == {"sign a": 1}
