"""The verdict: a scenario in which something is wrong is a failure, whatever the counts of effects say."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import eventlog
import replay
import runner
from eventlog import simdisk
from replay.events import QuestionAnswered, QuestionAsked, ResultRecorded
from replay.messages import ToolCall
from replay.state import Attempt
from runner import testing
from runner.testing import _play
from runner.testing._history import RUN, RUNS
from runner.testing._person import MISTAKEN
from runner.testing._plan import Plan
from runner.testing._play import play
from runner.testing._verdict import Baseline, judge, of_people
from runner.testing._world import World
from tests.testing import refunds, shop


def plan(folder: Path) -> Plan:
    """A parcel to be sent."""
    return Plan(**shop.swept(shop.MAILS, "sent"), reword=testing.reword_reply, root=folder)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[tuple[World, Baseline]]:
    """A parcel sent, with one death on the way; and what an undisturbed run comes to."""
    parcel = plan(tmp_path)
    baseline = parcel.baseline()
    with parcel.world() as world:
        yield play(world, [40]), baseline


def why(played: tuple[World, Baseline]) -> str:
    """What the judgement says, in one text."""
    return " · ".join(judge(*played, id="x", mode="memory", first="x").why)


def append(played: tuple[World, Baseline], *events: replay.AnyEvent) -> None:
    """Write a line into the run's log."""
    with eventlog.Directory(RUNS, disk=simdisk.Process(played[0].machine, pid=7)).open(RUN) as log:
        log.append(log.at, [replay.encode(event) for event in events])


def test_what_is_as_it_should_be_is_not_called_wrong(played: tuple[World, Baseline]) -> None:
    """The control."""
    assert why(played) == ""


def test_a_log_that_does_not_verify(played: tuple[World, Baseline]) -> None:
    """A byte changed in the middle."""
    machine = played[0].machine
    number = machine.find(RUNS / RUN / "seg-000001.jsonl")
    machine.files[number][200] ^= 1
    assert why(played).startswith("the log does not verify")


def test_a_log_that_cannot_be_read_after_a_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a failure of the scenario, and not the end of the sweep."""

    def spoilt(world: World, number: int, *points: int | None) -> list[threading.Thread]:
        beside = live(world, number, *points)
        if world.how == "dead":
            machine = world.machine
            data = machine.files[machine.find(RUNS / RUN / "seg-000001.jsonl")]
            data[data.index(b"\n") + 60] ^= 1
        return beside

    live = _play.live
    monkeypatch.setattr(_play, "live", spoilt)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    agent = shop.clerk(shop.MAILS, "sent")
    swept = testing.sweep(environment=shop.Shop, agent=agent, task="x", effects=shop.effects, only="memory:40")
    (failure,) = swept.failures
    assert failure.unfinished
    assert failure.why[0].startswith("after a death the log can't be read")
    assert failure.why[1].startswith("LogDamaged")


def test_a_result_of_what_never_happened(played: tuple[World, Baseline]) -> None:
    """The log says `ran` or `found`, and nothing did."""
    played[0].acted.clear()
    assert "1.0 is recorded as" in why(played)
    assert "and it never happened" in why(played)


def test_a_failure_that_happened(played: tuple[World, Baseline]) -> None:
    """The log says `failed`, and the parcel is on its way; and one call has two results."""
    append(played, ResultRecorded(call="1.0", how="failed", text="no"))
    assert "1.0 is recorded as failed, and it happened" in why(played)
    assert "not every call has exactly one result" in why(played)


def test_an_answer_in_another_name(played: tuple[World, Baseline]) -> None:
    """Who lied must be on record."""
    played[0].wrong_answers["1.0-settle-1"] = "1.0"
    append(played, QuestionAnswered(id="1.0-settle-1", answer="done", who="ada", digest="", text=""))
    assert "the log says that ada answered 1.0-settle-1" in why(played)


def decided(tmp_path: Path, decide: Callable[[runner.Question], runner.Answer | None]) -> str:
    """What the judgement says of a refund that is decided like this, where it should be decided as ever."""
    made: dict[str, Any] = {"environment": refunds.Outside, "agent": refunds.agent, "task": refunds.TASK}
    made |= {"effects": refunds.effects, "inputs": refunds.ADA, "message": "Hurry."}
    made |= {"reword": testing.reword_reply, "root": tmp_path}
    as_ever, otherwise = (Plan(**made, decide=how) for how in (refunds.decide, decide))
    with otherwise.world() as world:
        found = judge(play(world), as_ever.baseline(), id="x", mode="memory", first="x")
        assert world.sent
    return " · ".join(found.why)


def test_another_decision_than_in_the_undisturbed_run(tmp_path: Path) -> None:
    """An edit that was lost: another amount is paid, and the log says who decided what."""

    def approves(question: runner.Question) -> runner.Answer | None:
        answer = refunds.decide(question)
        return runner.Answer("approve", "ada") if answer is not None and answer.verdict == "edit" else answer

    assert decided(tmp_path, refunds.decide) == ""
    said = decided(tmp_path, approves)
    assert "pay c-7/2026 2100 broken -1, pay c-7/2026 4200 broken +1" in said
    assert '2.0 was decided as edit {"order": "c-7/2026", "cents": 2100' in said


def test_a_call_that_ran_against_its_answer(played: tuple[World, Baseline]) -> None:
    """Somebody refused it, and it happened."""
    asked = QuestionAsked(id="1.0-approve", kind="approve", call="1.0", tool="mail", arguments="{}", digest="d", why="")
    history = [asked, QuestionAnswered(id="1.0-approve", answer="respond", who="ada", digest="d", text="No need.")]
    assert list(of_people(*played, history)) == ["1.0 ran, and the answer was: respond No need."]


def test_a_message_that_did_not_arrive(played: tuple[World, Baseline]) -> None:
    """What was sent must be given to the model, once."""
    played[0].sent = True
    assert "1 messages were sent, 0 came, and the model was given 0" in why(played)


def test_the_audit_says_who_was_wrong(tmp_path: Path) -> None:
    """The log names the person whose answer cost an effect."""
    parcel = plan(tmp_path)
    baseline = parcel.baseline()
    sent = next(at for at, point in enumerate(baseline.points) if point == "tool mail 1.0, after")
    with parcel.world(without=("keys", "lookups"), answer_mode="wrong") as world:
        found = judge(play(world, [sent]), baseline, id="x", mode="person", first="x")
        audit = replay.audit(eventlog.Directory(RUNS, disk=simdisk.Process(world.machine)).read(RUN).lines)
    assert (found.duplicates, found.wrong_answers, found.why) == (1, 1, ())
    (asked,) = [question for call in audit.calls for question in call.questions]
    assert (asked.who, asked.answer) == (MISTAKEN, "rerun")


def test_a_call_left_in_doubt(played: tuple[World, Baseline]) -> None:
    """A finished run has settled everything."""
    world, _ = played
    assert world.state.at is not None
    attempt = Attempt(n=1, key="k", effect="non_idempotent", key_ttl=None, intent=None, marked=world.state.at)
    call = replay.CallState(call=ToolCall(tool="mail", arguments="{}", id="1.0"), attempts=(attempt,))
    world.state = replace(world.state, calls=(call,))
    assert "left in doubt: 1.0" in why(played)


def test_leftovers_in_the_workspace(played: tuple[World, Baseline]) -> None:
    """A half-made file must not be left."""
    (played[0].folder / "workspace" / ".refold-tmp-0123").touch()
    assert "left in the workspace: .refold-tmp-0123" in why(played)


def test_a_reply_paid_more_often_than_the_process_died(played: tuple[World, Baseline]) -> None:
    """Each death may cost one reply, and the log accounts for it."""
    played[0].replies["turn", "1"] += 3
    assert "replies were asked for twice, in 1 deaths" in why(played)


@pytest.mark.parametrize("count", [0, 2])
def test_effects_that_differ(played: tuple[World, Baseline], count: int) -> None:
    """More is a duplicate, less is lost."""
    world, baseline = played
    world.outside.did[:] = ["mail k"] * count
    found = judge(world, baseline, id="x", mode="memory", first="x")
    assert (found.duplicates, found.lost) == (max(0, count - 1), max(0, 1 - count))
    assert f"mail {count - 1:+d}" in found.why[-1] + found.why[0]


def test_a_run_that_did_not_finish(played: tuple[World, Baseline]) -> None:
    """Why is in its own words, and what is missing is not yet lost."""
    world, baseline = played
    world.how = "TurnLimit: it stopped"
    world.outside.did.clear()
    found = judge(world, baseline, id="x", mode="memory", first="x")
    assert (found.unfinished, found.lost, found.why) == (True, 0, ("TurnLimit: it stopped",))
