"""The judgement: a scenario in which something is wrong is called wrong, whatever the counts say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import eventlog
import replay
from runner import crashtest
from runner.crashtest._judged import Base, judged
from runner.crashtest._lives import Lives
from runner.crashtest._person import LIAR
from runner.crashtest._plan import Plan
from runner.crashtest._stage import RUN, RUNS
from tests.crashtest import shop


def plan(folder: Path) -> Plan:
    """A parcel to be sent."""
    agent = shop.clerk(shop.MAILS, "sent")
    return Plan(shop.Shop, agent, shop.TASK, shop.effects, (), 0, 0, crashtest.said_otherwise, folder)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[tuple[Lives, Base]]:
    """A parcel sent, with one death on the way; and what an undisturbed run comes to."""
    parcel = plan(tmp_path)
    base = parcel.base()
    with parcel.lives() as lives:
        yield lives.play([40]), base


def why(played: tuple[Lives, Base]) -> str:
    """What the judgement says, in one text."""
    lives, base = played
    return " · ".join(judged(lives, base, id="x", mode="memory", first="x").why)


def append(played: tuple[Lives, Base], *events: replay.AnyEvent) -> None:
    """Write a line into the run's log."""
    with eventlog.open(RUNS, RUN, disk=crashtest.Process(played[0].stage.machine, pid=7)) as log:
        log.append(log.at, [replay.encode(event) for event in events])


def test_what_is_as_it_should_be_is_not_called_wrong(played: tuple[Lives, Base]) -> None:
    """The control."""
    assert why(played) == ""


def test_a_log_that_does_not_verify(played: tuple[Lives, Base]) -> None:
    """A byte changed in the middle."""
    machine = played[0].stage.machine
    number = machine.find(RUNS / RUN / "seg-000001.jsonl")
    machine.files[number].data[200] ^= 1
    assert why(played).startswith("the log does not verify")


def test_a_log_that_cannot_be_read_after_a_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a failure of the scenario, and not the end of the sweep."""

    def spoilt(lives: Lives, number: int, kill: int | None) -> None:
        live(lives, number, kill)
        if lives.how == "dead":
            machine = lives.stage.machine
            machine.files[machine.find(RUNS / RUN / "seg-000001.jsonl")].data[200] ^= 1

    live = Lives._live  # noqa: SLF001 (where a life ends)
    monkeypatch.setattr(Lives, "_live", spoilt)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    agent = shop.clerk(shop.MAILS, "sent")
    swept = crashtest.sweep(world=shop.Shop, agent=agent, task="x", effects=shop.effects, only="memory:40")
    (failure,) = swept.failures
    assert failure.unfinished
    assert failure.why[0].startswith("after a death the log can't be read")
    assert failure.why[1].startswith("LogDamaged")


def test_a_result_of_what_never_happened(played: tuple[Lives, Base]) -> None:
    """The log says `ran` or `found`, and nothing did."""
    played[0].stage.acted.clear()
    assert "1.0 is recorded as" in why(played)
    assert "and it never happened" in why(played)


def test_a_failure_that_happened(played: tuple[Lives, Base]) -> None:
    """The log says `failed`, and the parcel is on its way; and one call has two results."""
    append(played, replay.ResultRecorded(call="1.0", how="failed", text="no"))
    assert "1.0 is recorded as failed, and it happened" in why(played)
    assert "not every call has exactly one result" in why(played)


def test_an_answer_in_another_name(played: tuple[Lives, Base]) -> None:
    """Who lied must be on record."""
    played[0].stage.lies["1.0-settle-1"] = "1.0"
    append(played, replay.QuestionAnswered(id="1.0-settle-1", answer="done", who="ada", digest="", text=""))
    assert "the log says that ada answered 1.0-settle-1" in why(played)


def test_the_audit_says_who_was_wrong(tmp_path: Path) -> None:
    """What a wrong answer cost is somebody's, by name."""
    parcel = plan(tmp_path)
    base = parcel.base()
    sent = next(at for at, point in enumerate(base.points) if point == "tool mail 1.0, after")
    with parcel.lives(without=("keys", "lookups"), manner="wrong") as lives:
        lives.play([sent])
        found = judged(lives, base, id="x", mode="person", first="x")
        audit = replay.audit(eventlog.read(RUNS, RUN, disk=crashtest.Process(lives.stage.machine)).lines)
    assert (found.duplicates, found.lies, found.why) == (1, 1, ())
    (asked,) = [question for call in audit.calls for question in call.questions]
    assert (asked.who, asked.answer) == (LIAR, "rerun")


def test_a_call_left_open(played: tuple[Lives, Base]) -> None:
    """A finished run has settled everything."""
    lives, _ = played
    assert lives.state.at is not None
    attempt = replay.Attempt(n=1, key="k", effect="once", remembers=None, intent=None, marked=lives.state.at)
    call = replay.CallState(call=replay.ToolCall(tool="mail", arguments="{}", id="1.0"), attempts=(attempt,))
    lives.state = replace(lives.state, calls=(call,))
    assert "left open: 1.0" in why(played)


def test_leftovers_in_the_workspace(played: tuple[Lives, Base]) -> None:
    """A half-made file is somebody's puzzle."""
    (played[0].stage.folder / "workspace" / ".refold-tmp-0123").touch()
    assert "left in the workspace: .refold-tmp-0123" in why(played)


def test_a_reply_paid_more_often_than_the_process_died(played: tuple[Lives, Base]) -> None:
    """Each death may cost one reply, and the log accounts for it."""
    played[0].stage.heard["turn", 1] += 3
    assert "replies were paid twice, in 1 deaths" in why(played)


@pytest.mark.parametrize("count", [0, 2])
def test_effects_that_differ(played: tuple[Lives, Base], count: int) -> None:
    """More is a duplicate, less is lost."""
    lives, base = played
    lives.stage.world.did[:] = ["mail k"] * count
    found = judged(lives, base, id="x", mode="memory", first="x")
    assert (found.duplicates, found.lost) == (max(0, count - 1), max(0, 1 - count))
    assert f"mail {count - 1:+d}" in found.why[-1] + found.why[0]


def test_a_run_that_did_not_finish(played: tuple[Lives, Base]) -> None:
    """Why is in its own words, and what is missing is not yet lost."""
    lives, base = played
    lives.how = "TurnLimit: it stopped"
    lives.stage.world.did.clear()
    found = judged(lives, base, id="x", mode="memory", first="x")
    assert (found.unfinished, found.lost, found.why) == (True, 0, ("TurnLimit: it stopped",))
