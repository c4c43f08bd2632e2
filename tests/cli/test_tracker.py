"""`refold tracker`: the faults of a world's tracker, kept in the world and obeyed at once."""

import json
from pathlib import Path

import pytest

from runner import triage
from tests.cli.conftest import Refold


@pytest.fixture(autouse=True)
def _not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting one is the triage job's affair and tested there."""

    async def url(world: Path) -> str:
        return f"http://there/{world.name}"

    monkeypatch.setattr(triage, "tracker", url)


def test_faults_are_kept_and_what_no_option_names_stays(refold: Refold, tmp_path: Path) -> None:
    """Each of them can be set, and set back."""
    world = tmp_path / "world"
    refold("tracker", "--world", world, "--ignore-keys", "--key-ttl", 5, "--delay", 0.5, "--lookup-down").ends(
        0, out="http://there/world"
    )
    kept = {"ignore_keys": True, "key_ttl": 5.0, "delay": 0.5, "lookup_down": True}
    assert json.loads((world / "tracker.json").read_text()) == kept
    refold("tracker", "--world", world, "--no-ignore-keys", "--no-lookup-down")
    assert triage.tracker_faults(world) == triage.TrackerFaults(key_ttl=5.0, delay=0.5)


def test_without_a_world_it_is_that_of_the_runs_directory_and_the_task(refold: Refold, runs: Path) -> None:
    """The same default as the triage command, or the faults would be set in another world."""
    refold("tracker", "--delay", 1).ends(0)
    assert (runs.with_name("runs.world") / "m1-done-after-delete" / "tracker.json").exists()
    assert refold("tracker", "--task", "m9-nothing").status == 2


def test_faults_that_can_not_be_are_refused(refold: Refold, tmp_path: Path) -> None:
    """A negative time is a mistake, and a file that somebody else wrote is not guessed at."""
    assert refold("tracker", "--world", tmp_path, "--delay", "-1").status == 2
    (tmp_path / "tracker.json").write_text("{}x")
    said = refold("tracker", "--world", tmp_path).ends(1, err="tracker.json")
    assert "Traceback" not in said.err
