"""Eight payments side by side, crashed at every point: none is made twice or lost; what was saved is not in doubt."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import testing
from tests.support import sampled, stage
from tests.support.figures import FIGURES
from tests.support.forkserver import ForkServer
from tests.testing import payments

JOB: dict[str, Any] = {"task": payments.TASK, "effects": payments.effects}


def swept(kinds: Sequence[str], **options: Any) -> testing.SweepReport:
    """Sweep an agent that pays one invoice to each of these."""
    return testing.sweep(environment=payments.Banks, agent=payments.payer(kinds), **JOB, **options)


def asked_only_of_what_was_in_flight(report: testing.SweepReport) -> bool:
    """Whether persons were asked only about calls without key and lookup that had no result on the disk at a death."""
    plain = {f"1.{n}" for n, kind in enumerate(payments.MIXED) if kind == "plain"}
    asked = [({q.partition("-")[0] for q in one.questions}, set(one.in_doubt)) for one in report.scenarios]
    return any(calls for calls, _ in asked) and all(calls <= in_doubt & plain for calls, in_doubt in asked)


@pytest.mark.fault("killed between two operations")
def test_of_payments_side_by_side_none_is_made_twice_or_lost_by_a_death_at_any_point() -> None:
    """Each is settled for itself: by its key, by its service, and a person only for what has neither."""
    report = swept(payments.MIXED, modes=("memory",), pairs=0, every=12)
    assert not report.failures, str(report)
    (row,) = report.rows
    assert row.scenarios >= len(report.points) // 12
    assert (row.duplicates, row.lost, row.unfinished) == (0, 0, 0)
    assert asked_only_of_what_was_in_flight(report)


@pytest.mark.full
@pytest.mark.early
@pytest.mark.parametrize("mode", testing.MODES)
@pytest.mark.parametrize("kinds", [payments.MIXED, ["plain"] * 8, ["keyed"] * 8], ids=["mixed", "plain", "keyed"])
def test_the_same_holds_in_every_mode_with_second_deaths(
    kinds: Sequence[str], mode: testing.Mode, record_property: Callable[[str, object], None]
) -> None:
    """Power cuts, services that fail, a person who is wrong, parks and stops; what was saved is never in doubt."""
    report = swept(kinds, modes=[mode], pairs=1, every=sampled(13, mode))
    record_property(FIGURES, f"{report.rows[0].scenarios:,} scenarios")
    assert not report.failures, str(report)
    (row,) = report.rows
    assert row.unfinished == 0
    if mode != "person":
        assert (row.duplicates, row.lost) == (0, 0)
        assert row.questions == 0 or "plain" in kinds
    if mode in ("memory", "power") and kinds == payments.MIXED:
        assert asked_only_of_what_was_in_flight(report)


@pytest.mark.full
def test_real_kills_of_real_threads_change_nothing_about_it() -> None:
    """At sixty points, and at a second one in each resume; with keys and lookups nobody has to be asked."""
    kinds = ["keyed", "asked"] * 4
    report = testing.kill_sweep(environment=payments.Ledger, agent=payments.payer(kinds), points=60, **JOB)
    print(testing.table(report.rows))  # noqa: T201 (the long tests print what they counted)
    assert not report.failures, str(report)
    (row,) = report.rows
    assert row.scenarios > 100
    assert (row.duplicates, row.lost, row.unfinished, row.questions) == (0, 0, 0, 0)


@pytest.mark.fault("killed between two operations")
def test_of_a_call_that_was_killed_before_it_began_a_real_person_says_that_it_did_not_happen() -> None:
    """Its marker is saved, and nothing was done; so it is run again, and paid once."""

    def killed(only: str = "") -> testing.SweepReport:
        agent = payments.payer(["plain"])
        return testing.kill_sweep(environment=payments.Ledger, agent=agent, points=2, only=only, **JOB)

    before = "tool pay_plain 1.0, before"
    report = killed(f"kill:{killed().points.index(before)}")
    assert not report.failures, str(report)
    assert all(one.questions == ("1.0-settle-1",) for one in report.scenarios if one.first == before)


def _killed(runs: Path, forks: ForkServer, at: int) -> bool:
    """Kill a process that pays at a moment, settle what it left, and judge that; whether it was killed."""
    runs.mkdir(parents=True)
    folder = str(runs.parent)
    ended = forks.run(payments.pay_and_die, runs=runs, folder=folder, at=at)
    known = set(stage.results(runs)) if (runs / "r").exists() else set()
    begun = payments.marked(runs) if (runs / "r").exists() else set()
    plain = {f"1.{n}" for n, kind in enumerate(payments.MIXED) if kind == "plain"}
    asked = set(forks.run(payments.settle, runs=runs, folder=folder).value)
    assert asked == (begun - known) & plain
    if begun:
        book = payments.effects(payments.Ledger(runs.parent))
        assert book == {f"{kind} {n}": 1 for n, kind in enumerate(payments.MIXED)}
        assert runner.read_state("r", runs).phase == "done"
    return ended.killed


def test_after_a_real_kill_in_the_middle_of_a_wave_a_person_is_asked_about_what_was_in_flight(
    tmp_path: Path, forks: ForkServer
) -> None:
    """And about nothing that was saved."""
    assert _killed(tmp_path / "runs", forks, 9)


@pytest.mark.full
def test_the_same_holds_at_every_moment_of_the_wave(tmp_path: Path, forks: ForkServer) -> None:
    """Before and after each payment, and after each save."""
    at = 0
    while _killed(tmp_path / f"{at:03}" / "runs", forks, at):
        at += 1
    assert at > 15
