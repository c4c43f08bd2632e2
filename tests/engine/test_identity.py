"""Who a run is: its uid makes its keys, and what has happened in a conversation does not happen in it again."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from replay.events import AttemptMarked, ResultRecorded, RunForked, RunStarted
from runner.testing import tool_calls
from tests.support import stage, tools
from tests.support.story import Story

PAY = [tool_calls(("pay", {"invoice": "i7"})), "over"]
HOUR = 3600.0


def paying(done: list[str], **options: Any) -> runner.Tool:
    """A tool that pays an invoice once per invoice."""

    def pay(invoice: str, call: runner.Call) -> str:
        done.append(call.key)
        return f"paid {invoice}"

    return runner.Tool(pay, **{"effect": "non_idempotent", "once_per": ("invoice",), **options})


@pytest.mark.fault("a run's id is used again")
def test_a_run_of_a_deleted_ones_name_has_keys_of_its_own(runs: Path) -> None:
    """Under the old key the service would hand back the old effect's result for the new task."""
    keys: list[str] = []
    stage.start(PAY, paying(keys), runs=runs)
    shutil.rmtree(runs / "r")
    stage.start(PAY, paying(keys), runs=runs)
    assert len(set(keys)) == 2
    (started,) = stage.events(runs, RunStarted)
    assert keys[1] == runner.key(started.uid, "1.0")


def test_a_uid_is_random_and_a_fork_has_its_own(runs: Path) -> None:
    """A fork is another run; what its parent left in doubt keeps the key that was sent."""
    done: list[str] = []
    uids = []
    for name in ("a", "b"):
        stage.start(PAY, paying(done), runs=runs, run=name)
        uids.append(runner.read_state(name, runs).uid)
    fork = runner.fork("a", at=1, runs=runs, new="c")
    (forked,) = stage.events(runs, RunForked, "c")
    assert forked.uid == fork.uid
    assert len({*uids, fork.uid}) == 3
    assert all(len(bytes.fromhex(uid)) == 16 for uid in (*uids, fork.uid))


def test_a_copy_and_an_export_keep_the_uid(runs: Path) -> None:
    """It is the same run in another place, and its keys are those that were sent."""
    stage.start(PAY, paying([]), runs=runs)
    uid = runner.read_state("r", runs).uid
    shutil.copytree(runs / "r", runs.parent / "copies" / "r")
    assert runner.read_state("r", runs.parent / "copies").uid == uid
    with eventlog.store(runs).salvage("r", "s"):
        pass
    assert runner.read_state("s", runs).uid == uid


@pytest.mark.fault("a continued run repeats an effect")
def test_an_intent_that_happened_before_the_conversation_was_continued_is_refused(runs: Path) -> None:
    """The second and the third run of a conversation read the first one's result."""
    done: list[str] = []
    stage.start(PAY, paying(done), runs=runs, run="first")
    stage.start(PAY, paying(done), runs=runs, run="second", after="first")
    stage.start(PAY, paying(done), runs=runs, run="third", after="second")
    assert len(done) == 1
    for name in ("second", "third"):
        result = stage.results(runs, name)["1.0"]
        assert (result.how, result.first) == ("refused", "1.0")
        assert "call 1.0 of first" in result.text
        assert "paid i7" in result.text


def test_another_run_may_do_the_same(runs: Path) -> None:
    """The scope is one conversation; a business key of the user's own guards more."""
    done: list[str] = []
    for name in ("a", "b"):
        stage.start(PAY, paying(done), runs=runs, run=name)
    assert len(done) == 2


@pytest.mark.fault("a key's lifetime was declared too long")
@pytest.mark.parametrize(("before", "after"), [(24, 1), (1, 24)])
def test_the_shorter_lifetime_of_a_key_counts(before: int, after: int) -> None:
    """A deploy corrects 24 hours to one: after five the service has forgotten the key, and a repeat would pay twice."""

    def pay(hours: int) -> runner.Tool:
        return tools.make("push", "keyed", key_ttl=timedelta(hours=hours))

    story = Story(tools.agent(pay(before)))
    story.reply(("push", '{"cause": "a"}'))
    story.die(5 * HOUR, agent=tools.agent(pay(after)))
    assert not any(isinstance(event, AttemptMarked) for event in story.go())
    assert [question.kind for question in story.state.waiting] == ["settle"]


def test_declarations_stand_in_the_log_as_values(runs: Path) -> None:
    """So that drift can say what was changed, and what was loosened."""
    stage.start(PAY, paying([], approval=lambda _: False, timeout=5, attempts=2), runs=runs)
    (started,) = stage.events(runs, RunStarted)
    declared = started.definitions.tools["pay"]
    assert (declared.effect, declared.once_per, declared.approval) == ("non_idempotent", ("invoice",), "predicate")
    assert (declared.timeout, declared.attempts, declared.lookup, declared.key_ttl) == (5, 2, False, None)


def test_drift_names_what_changed_in_a_declaration(runs: Path) -> None:
    """A digest alone would only say that something did."""
    stage.start(PAY, paying([]), runs=runs)
    changed = stage.agent(PAY, paying([], timeout=5))
    drift = [part for part in runner.review.retrace("r", changed, runs=runs).drift if part.part == "tool pay"]
    assert [(part.was, part.now) for part in drift] == [("", "visible_within 60.0 -> 5, timeout 60.0 -> 5")]


@pytest.mark.fault("what happened is lost on the way to the next run")
def test_the_opening_of_a_continued_run_can_be_read_by_another_process(runs: Path) -> None:
    """The intents stand in the log itself, not in the run that was continued."""
    done: list[str] = []
    stage.start(PAY, paying(done), runs=runs, run="first")
    stage.start(["hello"], paying(done), runs=runs, run="second", after="first")
    shutil.rmtree(runs / "first")
    stage.start(PAY, paying(done), runs=runs, run="third", after="second")
    (result,) = stage.events(runs, ResultRecorded, "third")
    assert (len(done), result.how) == (1, "refused")
