"""`refold sweep`: the table, the JSON, one scenario again, and a status that CI can stand on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import testing, triage
from tests.cli.conftest import Refold
from tests.support.terminal import Terminal

FINE = testing.Scenario(id="memory:3", mode="memory", first="3 write head, after")
WRONG = testing.Scenario(
    id="power:4~1", mode="power", first="4 sync head, after, image 1", duplicates=1, why=("issue +1",)
)


def swept(*scenarios: testing.Scenario) -> testing.SweepReport:
    """What a sweep may come to."""
    rows = tuple(
        testing.Row(mode=one.mode, scenarios=1, duplicates=one.duplicates, failures=len(one.why)) for one in scenarios
    )
    return testing.SweepReport(("0 make directory runs, before",), rows, scenarios)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, dict[str, Any]]]:
    """Let the sweeps come to something at once; what each of them was asked for."""

    def come_to(simulated: testing.SweepReport, killed: testing.SweepReport | None = None) -> dict[str, dict[str, Any]]:
        given: dict[str, dict[str, Any]] = {}

        def noted(what: str, options: dict[str, Any], swept: testing.SweepReport | None) -> testing.SweepReport | None:
            given[what] = options
            return swept

        monkeypatch.setattr(triage, "sweep", lambda **options: noted("sweep", options, simulated))
        monkeypatch.setattr(
            triage, "killed", lambda points, **options: noted("killed", options | {"points": points}, killed)
        )
        return given

    return come_to


def test_one_mode_is_swept_for_real_and_printed_as_a_table(refold: Refold) -> None:
    """Nothing goes wrong in the shipped job."""
    said = refold("sweep", "--only", "memory:120")
    assert said.status == 0, said.err
    head, row = said.out.splitlines()
    assert head.split()[:3] == ["mode", "without", "scenarios"]
    assert row.split() == ["memory", "1", "0", "0", "0", "0", "0", "0"]


def test_all_modes_are_swept_unless_some_are_named(refold: Refold, asked: Callable[..., Any]) -> None:
    """The simulated ones and the real kills, in one table with their sum."""
    given = asked(swept(FINE), swept())
    refold("sweep", "--pairs", "5", "--seed", "7", "--jobs", "1", "--without", "both").ends(0)
    assert given["sweep"]["modes"] == testing.MODES
    assert (given["sweep"]["pairs"], given["sweep"]["seed"], given["sweep"]["jobs"]) == (5, 7, 1)
    assert given["sweep"]["without"] == ("keys", "lookups")
    assert given["killed"]["seed"] == 7


def test_a_named_mode_is_the_only_one(refold: Refold, asked: Callable[..., Any]) -> None:
    """Also by the id of a scenario."""
    given = asked(swept(FINE), swept())
    refold("sweep", "--mode", "late", "--mode", "power", "--pairs", "all")
    assert (given["sweep"]["modes"], given["sweep"]["pairs"]) == (("power", "late"), "all")
    assert "killed" not in given
    given = asked(swept(FINE), swept(FINE))
    refold("sweep", "--only", "kill:12/3")
    assert "sweep" not in given
    assert given["killed"]["only"] == "kill:12/3"


def test_a_failure_is_said_with_the_command_that_plays_it_again(refold: Refold, asked: Callable[..., Any]) -> None:
    """And the status says so."""
    asked(swept(FINE, WRONG))
    refold("sweep", "--mode", "power", "--without", "keys", "--seed", "3").ends(
        1,
        out="failed: issue +1\n    power:4~1: 4 sync head, after, image 1",
        err="refold sweep --without keys --seed 3 --only 'power:4~1'",
    )


def test_a_program_gets_the_points_the_rows_and_every_scenario(refold: Refold, asked: Callable[..., Any]) -> None:
    """With the names of the points."""
    asked(swept(FINE, WRONG))
    found = refold("sweep", "--mode", "power", "--json").json
    assert found["points"] == ["0 make directory runs, before"]
    assert [row["mode"] for row in found["rows"]] == ["memory", "power"]
    assert found["scenarios"][1]["why"] == ["issue +1"]


def test_random_kills_are_a_table_too(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as was asked; what failed is said."""

    def random_kills(seconds: float, *, failed: Callable[[str], None], **_: Any) -> list[testing.Row]:
        failed("the run in /x did not finish")
        return [testing.Row(mode=f"random for {seconds:g} s", scenarios=9, unfinished=1)]

    monkeypatch.setattr(triage, "random_kills", random_kills)
    refold("sweep", "--random", "2m").ends(1, out="random for 120 s", err="the run in /x did not finish")
    assert refold("sweep", "--random", "2m", "--json").json["rows"][0]["unfinished"] == 1


@pytest.mark.parametrize(
    "words", [["--pairs", "some"], ["--mode", "tidal"], ["--jobs", "0"], ["--random", "soon"], ["--only", "nowhere:3"]]
)
def test_what_makes_no_sense_is_a_usage_error(refold: Refold, words: list[str]) -> None:
    """Before anything is swept."""
    assert refold("sweep", *words).status == 2


def test_a_person_at_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    """A bar on stderr that is gone when the table comes; the sweep forks, so no thread draws it."""
    words = ("sweep", "--mode", "model", "--pairs", 0, "--jobs", 1)
    with Terminal(*words, cwd=tmp_path, env={"COLUMNS": "80"}) as terminal:
        terminal.until("first points")
        terminal.until("%")
        assert terminal.end(60) == 0
        assert "model" in terminal.seen.rpartition("first points")[2]
