"""Forks of one history know of each other: what one of them did is guarded in the next, and never do two go on."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from tests.runs import scenes
from tests.runs.scenes import Shop

LOOK = runner.testing.tool_calls(("look", {"what": "a"}))
PAY = runner.testing.tool_calls(("pay", {"invoice": "i7", "ref": "x"}))
PUT = runner.testing.tool_calls(("put", {"what": "a"}))


def finish(runs: Path, shop: Shop, run: str, *script: object) -> None:
    """Carry a run on to its end, with a person who tells the truth."""
    done = runner.resume_sync(run, shop.agent(*script), runs=runs, on_question=shop.truth)
    assert isinstance(done, runner.Finished)


def test_what_another_fork_of_the_same_run_did_is_guarded(runs: Path, shop: Shop) -> None:
    """Who rewinds a second time means the same beginning, and the first fork's payment was made."""
    scenes.start(shop, LOOK, "nothing to do", runs=runs)
    runner.fork("p", at=2, runs=runs, new="f")
    finish(runs, shop, "f", LOOK, PAY, "paid")
    state = runner.fork("p", at=2, runs=runs, new="g")
    assert [(f.run, f.call, f.tool) for f in state.fork_guard] == [("f", "2.0", "pay")]
    finish(runs, shop, "g", LOOK, PAY, "paid")
    assert shop.done == {"pay i7": 1}


def test_while_one_fork_can_still_go_on_no_other_is_made(runs: Path, shop: Shop) -> None:
    """Each would act without knowing of the other."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    runner.fork("p", at=2, runs=runs, new="f")
    with pytest.raises(runner.errors.NotForkable, match="f, a fork of the same history, can still go on"):
        runner.fork("p", at=2, runs=runs, new="g")
    runner.fork("f", at=2, runs=runs, new="g")
    with pytest.raises(runner.errors.NotForkable, match="g, a fork"):
        runner.fork("p", at=2, runs=runs)
    runner.stop("g", "ann", runs=runs)
    assert len(runner.fork("p", at=2, runs=runs, new="h").fork_guard) == 1


@pytest.mark.parametrize(
    ("run", "other", "gone"),
    [("p", "f", False), ("f", "p", False), ("f", "g", False), ("f", "g", True), ("g", "f", True)],
)
def test_two_forks_of_one_history_are_not_made_at_the_same_time(
    runs: Path, shop: Shop, run: str, other: str, *, gone: bool
) -> None:
    """Neither has its name yet when the other looks, so both would go on; also when their origin is gone by then."""

    class Meanwhile(eventlog.Directory):
        """Runs, of which another is forked just before a fork of one has its name."""

        def fork(self, *given: Any, **options: Any) -> eventlog.Log:
            with pytest.raises(eventlog.RunLocked):
                runner.fork(other, at=2, runs=runs)
            return super().fork(*given, **options)

    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    for name in ("f", "g"):
        runner.fork("p", at=2, runs=runs, new=name)
        runner.stop(name, "ann", runs=runs)
    if gone:
        shutil.rmtree(runs / "p")
    assert runner.fork(run, at=2, runs=Meanwhile(runs), new="h").parent == run


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "damaged"])
def test_an_origin_that_nobody_can_open_keeps_its_forks_from_nothing(runs: Path, shop: Shop, gone: bool) -> None:
    """What it did is in their own history."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    runner.fork("p", at=2, runs=runs, new="f")
    segment = runs / "p" / "seg-000001.jsonl"
    shutil.rmtree(runs / "p") if gone else segment.write_bytes(segment.read_bytes().replace(b"do it", b"do is"))
    assert runner.fork("f", at=2, runs=runs, new="g").parent == "f"


@pytest.mark.fault("who continues a fork repeats what its parent did")
def test_who_continues_a_fork_does_not_repeat_what_its_parent_did(runs: Path, shop: Shop) -> None:
    """Its model has read the fork's conversation, which says nothing of that payment either."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    runner.fork("p", at=2, runs=runs, new="f")
    finish(runs, shop, "f", LOOK, "nothing to do")
    scenes.start(shop, "nothing to do", runs=runs, run="g", after="f")
    agent = shop.agent(PAY, "paid")
    outcome = runner.start_sync(agent, "pay", runs=runs, run="h", after="g", on_question=shop.truth)
    assert isinstance(outcome, runner.Finished)
    assert shop.done == {"pay i7": 1}


def test_a_fork_of_a_fork_from_before_the_first_knows_what_both_did(runs: Path, shop: Shop) -> None:
    """The first fork's own guard stands after the line; what it holds has happened all the same."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    runner.fork("p", at=4, runs=runs, new="f")
    finish(runs, shop, "f", LOOK, PUT, "over")
    state = runner.fork("f", at=2, runs=runs, new="g")
    assert {(f.run, f.tool) for f in state.fork_guard} == {("p", "pay"), ("f", "put")}
    finish(runs, shop, "g", PUT, PAY, "over")
    assert shop.done == {"pay i7": 1, "put a": 1}


def test_what_a_fork_came_from_is_its_own_history_and_not_guarded(runs: Path, shop: Shop) -> None:
    """An agent that does before the line what it does again after it is not asked about the first."""
    scenes.start(shop, PUT, LOOK, "over", runs=runs)
    runner.fork("p", at=4, runs=runs, new="f")
    finish(runs, shop, "f", "", PUT, "over")
    last = scenes.lines(runs, "f")[-1].seq
    assert runner.fork("f", at=last, runs=runs, new="g").fork_guard == ()
    finish(runs, shop, "g", "", "", "over")
    last = scenes.lines(runs, "g")[-1].seq
    assert runner.fork("g", at=last, runs=runs, new="h").fork_guard == ()


def test_a_fork_that_cannot_be_read_is_in_the_way(runs: Path, shop: Shop) -> None:
    """What it did can't be known."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    runner.fork("p", at=2, runs=runs, new="f")
    segment = runs / "f" / "seg-000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"type":"run_forked"', b'"type":"run_torked"'))
    with pytest.raises(runner.errors.NotForkable, match="can't be read"):
        runner.fork("p", at=2, runs=runs, new="g")


def test_other_runs_of_the_directory_are_nobodys_business(runs: Path, shop: Shop) -> None:
    """Neither an unrelated run nor a directory that never became one, nor one whose first line is broken."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    scenes.start(shop, runner.testing.tool_calls(("sign", {"what": "a"})), runs=runs, run="q")
    scenes.start(shop, LOOK, "over", runs=runs, run="broken")
    (runs / "broken" / "seg-000001.jsonl").write_bytes(b"nothing\n")
    (runs / "empty").mkdir()
    assert eventlog.store(runs).header("empty") is None
    assert eventlog.store(runs).header("broken") is None
    assert len(runner.fork("p", at=2, runs=runs, new="f").fork_guard) == 1


def test_the_first_line_of_a_run_is_read_in_pieces_and_no_more_of_it(
    runs: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory may hold ten thousand runs, and a header may be longer than one piece."""
    scenes.start(shop, LOOK, PAY, "over", runs=runs)
    whole = eventlog.store(runs).header("p")
    monkeypatch.setattr("eventlog._listing._PIECE", 16)
    assert eventlog.store(runs).header("p") == whole == scenes.lines(runs, "p")[0].header
    monkeypatch.setattr(eventlog.DISK, "pread", _fails)
    assert eventlog.store(runs).header("p") is None


def _fails(*_: object) -> bytes:
    raise OSError
