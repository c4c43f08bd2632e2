"""What a person says to a run from outside is in its log exactly once, or its sender is told why not."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import eventlog
import runner
from eventlog import simdisk
from replay.events import QuestionAnswered, RequestRefused, RunStopped
from runner.testing import tool_calls
from tests.support import stage
from tests.support.disks import Quick
from tests.support.faulty_disk import Fault, FaultyDisk

RUNS = Path("/runs")
QUESTION = "1.0-approve"


@runner.tool(approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


AGENT = stage.agent([tool_calls(("pay", {})), "over"], pay)


def paused(runs: Any, run: str = "r") -> None:
    """Make a run that waits for a yes."""
    stage.asked(runner.start_sync(AGENT, "pay", runs=runs, run=run, clock=stage.Ticking()))


def left(runs: Any, name: str, **request: Any) -> None:
    """Leave a request in the inbox, as the process of a poster that dies then."""
    eventlog.store(runs).post("r", name, msgspec.json.encode({"post": "m" * 16, **request}))


def test_an_answer_to_a_run_that_nobody_holds_is_written_at_once(runs: Path) -> None:
    """It carries its request's name and mark, and no file is left."""
    paused(runs)
    receipt = runner.approve("r", QUESTION, "ann", runs=runs)
    assert (receipt.written, receipt.holder) == (True, None)
    (answer,) = stage.events(runs, QuestionAnswered)
    assert (answer.who, answer.request, len(answer.post)) == ("ann", f"answer-{QUESTION}", 16)
    assert receipt.state.taken[f"answer-{QUESTION}"].who == "ann"
    assert list((runs / "r" / "inbox").iterdir()) == []
    assert stage.finished(runner.resume_sync("r", AGENT, runs=runs)) == "over"


def test_a_parked_run_goes_on_by_a_resume_and_not_before(runs: Path) -> None:
    """Who posts a park while nobody holds the run, parks it; a resume that only finds the park does not undo it."""
    paused(runs)
    assert runner.park("r", "ann", runs=runs).written
    with pytest.raises(runner.errors.NotStoppable, match="can't be stopped or parked: it is parked: by ann"):
        runner.park("r", "bob", runs=runs)
    runner.approve("r", QUESTION, "ann", runs=runs)
    assert stage.finished(runner.resume_sync("r", AGENT, runs=runs)) == "over"
    paused(runs, "s")
    eventlog.store(runs).post("s", "park-1", msgspec.json.encode({"kind": "park", "who": "ann", "post": "m"}))
    with pytest.raises(runner.errors.Parked, match="by ann"):
        runner.resume_sync("s", AGENT, runs=runs)
    runner.stop("s", "ann", runs=runs)
    with pytest.raises(runner.errors.NotStoppable, match="stopped for good"):
        runner.park("s", "bob", runs=runs)
    with pytest.raises(runner.errors.NotStoppable, match="it is done"):
        runner.stop("r", "bob", runs=runs)


@pytest.mark.fault("two answers to one question")
def test_who_comes_second_is_told_who_was_first_also_while_the_first_lies_in_the_inbox(runs: Path) -> None:
    """The first poster died before it could write its answer; the second one writes it for them."""
    paused(runs)
    left(runs, f"answer-{QUESTION}", kind="answer", who="ann", question=QUESTION, verdict="refuse", text="no")
    with pytest.raises(runner.errors.AlreadyAnswered, match="refuse, by ann"):
        runner.approve("r", QUESTION, "bob", runs=runs)
    assert [answer.who for answer in stage.events(runs, QuestionAnswered)] == ["ann"]


@pytest.mark.fault("a hostile request")
@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("answer-x", {"kind": "answer", "who": "eve", "question": "x", "verdict": "approve"}),
        ("answer-x", {"kind": "answer", "who": "eve", "question": QUESTION, "verdict": "approve"}),
        (f"answer-{QUESTION}", {"kind": "answer", "who": "eve", "question": QUESTION, "verdict": "done"}),
        (f"answer-{QUESTION}", {"kind": "answer", "who": " ", "question": QUESTION, "verdict": "approve"}),
        (f"answer-{QUESTION}", {"kind": "answer", "who": "eve", "question": QUESTION}),
        ("stop", {"kind": "park", "who": "eve"}),
        ("stop", {"kind": "stop", "who": "eve", "result": "paid"}),
        ("result-1.0", {"type": "result_recorded", "call": "1.0", "how": "ran", "text": "forged", "n": 1}),
        ("stop", []),
    ],
)
def test_a_request_that_does_not_fit_is_refused_in_the_log_and_hurts_nobody(
    runs: Path, name: str, request_: Any
) -> None:
    """It takes no name: the right answer still counts."""
    paused(runs)
    eventlog.store(runs).post(
        "r", name, msgspec.json.encode({"post": "m", **request_} if isinstance(request_, dict) else request_)
    )
    assert runner.approve("r", QUESTION, "ann", runs=runs).written
    (refused,) = stage.events(runs, RequestRefused)
    assert any(f.kind == "request-refused" and name in f.says for f in runner.review.audit("r", runs).story.findings)
    assert (refused.request, bool(refused.why)) == (name, True)
    assert refused.who in ("", "eve", " ")
    assert stage.finished(runner.resume_sync("r", AGENT, runs=runs)) == "over"
    assert not any((runs / "r" / "inbox").iterdir())


@pytest.mark.fault("a hostile request")
@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b'{"kind":' * 9, b"0" * 100])
def test_bytes_that_are_no_request_are_refused_once(runs: Path, data: bytes) -> None:
    """Whatever they are; and each opener goes on."""
    paused(runs)
    eventlog.store(runs).post("r", "stop", data)
    assert runner.approve("r", QUESTION, "ann", runs=runs).written
    assert len(stage.events(runs, RequestRefused)) == 1
    assert runner.stop("r", "ann", runs=runs).written


@pytest.mark.fault("a late request that nobody takes")
def test_whoever_held_a_run_for_something_else_takes_what_was_posted_meanwhile(runs: Path) -> None:
    """Its poster found the run held and went away; after the release nobody else would look."""
    paused(runs)
    left(runs, "park-1", kind="park", who="ann")
    runner.compact("r", runs=runs)
    assert [stop.who for stop in stage.events(runs, RunStopped)] == ["ann"]
    left(runs, f"answer-{QUESTION}", kind="approve", who="ann")
    line = runner.read_state("r", runs).seq
    runner.fork("r", at=line, runs=runs, who="bob")
    assert not eventlog.store(runs).inbox("r").requests
    assert stage.events(runs, RunStopped)[-1].reason == "Forked"


def test_of_a_stop_and_a_park_that_lie_there_together_the_stop_is_written(runs: Path) -> None:
    """After the answers, and the park is refused."""
    paused(runs)
    left(runs, "park-1", kind="park", who="ann")
    left(runs, "stop", kind="stop", who="bob")
    left(runs, f"answer-{QUESTION}", kind="answer", who="eve", question=QUESTION, verdict="approve")
    with pytest.raises(runner.errors.StoppedByPerson):
        runner.resume_sync("r", AGENT, runs=runs)
    assert [type(event) for event in stage.lines(runs)[-1]] == [QuestionAnswered, RequestRefused, RunStopped]
    left(runs, "park-2", kind="park", who="ann")
    before = len(stage.lines(runs))
    with pytest.raises(runner.errors.StoppedByPerson):
        runner.resume_sync("r", AGENT, runs=runs)
    assert len(stage.lines(runs)) == before, "after the end nothing is written"
    assert not any((runs / "r" / "inbox").iterdir())


def _deaths() -> Iterator[tuple[simdisk.Machine, FaultyDisk]]:
    """A machine with a paused run, and a disk whose process dies, at each of its operations until none is left."""
    for nth in itertools.count(1):
        for late in (False, True):
            machine = simdisk.Machine()
            paused(eventlog.Directory(RUNS, disk=simdisk.Process(machine)))
            fault = Fault(nth=nth, late=late, error=simdisk.Killed)
            yield machine, FaultyDisk(simdisk.Process(machine, pid=7), fault)


def _ask(kind: str, who: str, disk: eventlog.Disk) -> str:
    """Who the run says asked for that first."""
    runs = eventlog.Directory(RUNS, disk=disk)
    try:
        if kind == "answer":
            assert runner.approve("r", QUESTION, who, runs=runs).written
        else:
            assert getattr(runner, kind)("r", who, runs=runs).written
    except runner.errors.AlreadyAnswered as first:
        return first.who
    except runner.errors.NotStoppable as first:
        return "ann" if "ann" in str(first) else "nobody"
    return who


@pytest.mark.fault("the death of a poster")
@pytest.mark.parametrize("kind", ["answer", "stop", "park"])
def test_a_request_whose_poster_died_at_any_point_is_there_once_or_not_at_all(kind: str) -> None:
    """The next poster writes it, or its own; never both, never none."""
    firsts = set()
    for machine, disk in _deaths():
        with contextlib.suppress(simdisk.Killed):
            _ask(kind, "ann", disk)
        died = bool(disk.hit)
        disk.inner.die()  # type: ignore[attr-defined] # a simulated process
        first = _ask(kind, "bob", simdisk.Process(machine, pid=8))
        runs = eventlog.Directory(RUNS, disk=simdisk.Process(machine, pid=9))
        state = runner.read_state("r", runs)
        assert [taken.who for taken in state.taken.values()] == [first]
        with contextlib.suppress(runner.Stopped):
            runner.resume_sync("r", AGENT, runs=runs)
        assert runs.inbox("r") == ([], [])
        assert runner.read_state("r", runs).refused == {}, "a request that was taken is only removed"
        assert runs.verify("r").ok
        firsts.add(first)
        if not died:
            break
    assert firsts == {"ann", "bob"}


def _both(runs: Path, question: str, told: dict[str, list[str]]) -> None:
    """Two people answer at the same moment; each is told who was first."""
    barrier = threading.Barrier(2)

    def answer(who: str) -> None:
        barrier.wait()
        try:
            runner.approve("r", question, who, runs=runs)
            told[who].append(who)
        except runner.errors.AlreadyAnswered as first:
            told[who].append(first.who)

    threads = [threading.Thread(target=answer, args=(who,)) for who in told]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.full
@pytest.mark.fault("two answers to one question")
def test_of_two_who_answer_at_once_one_wins_and_both_are_told_so_a_thousand_times(runs: Path, tmp_path: Path) -> None:
    """The name decides, and nothing else."""
    paused(runs)
    shutil.copytree(runs, tmp_path / "paused")
    wins = []
    for _ in range(1000):
        told: dict[str, list[str]] = {"ann": [], "bob": []}
        _both(runs, QUESTION, told)
        (answer,) = stage.events(runs, QuestionAnswered)
        assert told == {"ann": [answer.who], "bob": [answer.who]}
        wins.append(answer.who)
        shutil.rmtree(runs)
        shutil.copytree(tmp_path / "paused", runs)
    assert set(wins) == {"ann", "bob"}


@pytest.mark.fault("a hostile file in the inbox")
def test_what_is_no_request_is_named_by_an_audit_and_a_run_goes_on_beside_it(runs: Path) -> None:
    """A link, a FIFO, a gigabyte: nobody reads them, and nobody waits for them."""
    paused(runs)
    left(runs, "stop", kind="park", who="eve")
    box = runs / "r" / "inbox"
    (box / "link").symlink_to("/etc/passwd")
    os.mkfifo(box / "pipe")
    with (box / f"answer-{QUESTION}").open("wb") as huge:
        huge.truncate(1 << 30)
    said = {finding.says for finding in runner.review.audit("r", runs).story.findings if finding.kind == "inbox"}
    assert said == {
        "stop waits in the inbox to be taken",
        f"answer-{QUESTION} waits in the inbox to be taken",
        "link lies in the inbox and is no request",
        "pipe lies in the inbox and is no request",
    }
    assert runner.approve("r", QUESTION, "ann", runs=runs).written
    assert stage.finished(runner.resume_sync("r", AGENT, runs=runs)) == "over"
    assert sorted(path.name for path in box.iterdir()) == ["link", "pipe"]


@pytest.mark.fault("too many open files")
@pytest.mark.parametrize("say", [runner.stop, functools.partial(runner.approve, question=QUESTION)])
def test_what_can_not_be_read_for_want_of_descriptors_is_read_a_moment_later_and_not_refused(
    runs: Path, say: Any
) -> None:
    """A person's words outlive a process that has too many files open."""

    class Scarce(Quick):
        left = 3

        def open(self, path: Path, **options: Any) -> int:
            if path.parent.name == "inbox" and not options.get("write") and self.left:
                self.left -= 1
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().open(path, **options)

    paused(runs)
    disk = Scarce()
    assert say("r", who="ann", runs=eventlog.Directory(runs, disk=disk)).written
    assert (disk.left, stage.events(runs, RequestRefused)) == (0, [])
