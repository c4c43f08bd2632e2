"""A parent and its children are linked wherever a run is shown."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pytest

import eventlog
from runner._cli import main
from tests.children import scenes
from tests.children.scenes import children, lead, paying, start
from tests.ui.scenes import Person


def said(*words: str) -> str:
    """What the command says, which ends as it should."""
    done = click.testing.CliRunner().invoke(main, list(words))
    assert done.exit_code in (0, 3), done.output
    return done.output


def test_the_commands_link_a_parent_and_its_child_and_answer_by_the_path(tmp_path: Path) -> None:
    """What is printed can be pasted; the child's page names its parent, and a list says whose child a run is."""
    runs = str(tmp_path / "runs")
    start(lead("ask a"), eventlog.Directory(runs))
    (child,) = children(eventlog.Directory(runs))
    parent = said("show", "p", "--runs", runs)
    assert f"run {child} does it" in parent
    assert "refold approve p 1.0:1.0-approve" in parent
    assert "p, its call 1.0" in said("show", child, "--runs", runs)
    assert json.loads(said("show", "p", "--json", "--runs", runs))["children"] == {"1.0": child}
    assert json.loads(said("show", child, "--json", "--runs", runs))["parent_call"]["run"] == "p"
    listed = {one["run"]: one for one in json.loads(said("ls", "--json", "--runs", runs))}
    assert (listed[child]["parent_call"]["run"], listed["p"]["parent_call"]) == ("p", None)
    assert "(p) ask a" in said("ls", "--runs", runs)
    assert f"the child run {child} does it" in said("audit", "p", "--runs", runs)
    assert "approved by ann" in said("approve", "p", "1.0:1.0-approve", "--by", "ann", "--runs", runs)
    page = tmp_path / "page.html"
    said("report", "p", "--runs", runs, "--output", str(page))
    assert child in page.read_text(encoding="utf-8")


def test_a_preflight_and_a_resume_of_all_know_whose_child_a_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent is known by its parent's, which alone carries it on: neither is a failure."""
    runs, agent = str(tmp_path / "runs"), lead("ask a")
    start(agent, eventlog.Directory(runs))
    (child,) = children(eventlog.Directory(runs))
    monkeypatch.setattr(scenes, "agent", agent, raising=False)
    monkeypatch.setattr(scenes, "clerk", paying(), raising=False)
    checked = said("preflight", "--agent", "tests.children.scenes:agent", "--runs", runs, "--json")
    assert {one["run"]: one["able"] for one in json.loads(checked)} == {"p": True, child: True}
    resumed = said("resume", "--all", "--agent", "tests.children.scenes:clerk", "--runs", runs)
    assert "left alone: 1 of parent p, 1 of agent lead" in resumed


def test_the_console_asks_a_childs_question_once_and_resumes_its_parent_alone(tmp_path: Path) -> None:
    """By its parent, as `refold inbox` does: an answer to the child alone would leave the other form standing."""
    store = eventlog.Directory(tmp_path / "runs")
    start(lead("ask a"), store)
    (child,) = children(store)
    ann = Person(store)
    page = ann.see("/inbox")
    assert page.count('value="approve"') == 1
    assert 'action="/runs/p/answer"' in page
    assert f"/runs/{child}/answer" not in page
    assert "Resume" in ann.see("/runs/p")
    assert "Resume" not in ann.see(f"/runs/{child}")
