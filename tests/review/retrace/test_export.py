"""A run becomes a test: it passes as a stranger runs it, fails when the agent goes another way, and holds no secret."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import replay
import runner
import runner.testing
from tests.cli.conftest import Output, Refold
from tests.review.retrace import agents
from tests.review.retrace.histories import logged
from tests.support import ROOT, unmeasured
from tests.support.story import Story

pytestmark = [pytest.mark.fault("a secret in a test that others see")]

AT = "--agent=tests.review.retrace.agents:"

MINE = """import runner
import runner.testing

@runner.tool(effect="reads")
def look(x: int) -> int:
    \"\"\"Look at a number.\"\"\"
    return x

model = runner.testing.ScriptedModel([runner.testing.tool_calls(("look", {"x": 1})), "It is one."])
agent = runner.Agent(model=model, tools=[look], name="mine")
"""


def _pytest(place: Path, *words: str) -> Output:
    """Pytest as a stranger runs it: in a directory of its own, with nothing of our configuration."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *words],
        cwd=place,
        env=unmeasured.environment(PYTHONPATH=str(ROOT), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS=""),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Output(done.returncode, done.stdout, done.stderr)


def test_an_exported_test_passes_and_fails_once_the_agent_goes_another_way(
    refold: Refold, tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a stranger's project, by pytest, offline, without the run, named like a keyword, and its directory."""
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert refold("run", "--agent", "mine:agent", "look at one", "--run", "class").status == 0
    made = refold("export", "class", "--agent", "mine:agent", "--pytest", "tests/test_mine.py")
    monkeypatch.delitem(sys.modules, "mine")
    assert made.status == 0, made.err
    assert "4 decisions" in made.out
    for path in sorted(runs.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "tests" / "conftest.py").write_text("", encoding="utf-8")

    passed = _pytest(tmp_path, "tests/test_mine.py")
    assert passed.status == 0, passed.out
    assert "1 passed" in passed.out

    text = MINE.replace('effect="reads"', 'effect="non_idempotent"').replace("Look at a number.", "Look.")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    failed = _pytest(tmp_path, "tests/test_mine.py")
    assert failed.status == 1, failed.out
    assert "class diverges at line 3: the attempt of a call differs in effect" in failed.out
    assert '- the attempt of a call, effect: "reads"' in failed.out


@pytest.fixture
def paid(runs: Path) -> str:
    """A run whose arguments, results, answer and intents hold what looks like secrets."""
    runner.start_sync(agents.paying, "pay with password=hunter22", runs=runs, run="paid")
    runner.approve("paid", "2.0-approve", runs=runs, who="ann")
    runner.resume_sync("paid", agents.paying, runs=runs)
    return "paid"


def test_secrets_are_masked_and_what_they_decide_is_decided_again(paid: str, runs: Path, tmp_path: Path) -> None:
    """A masked argument has another digest and another intent; the refused repeat must stay refused."""
    data, told = runner.review.export(
        paid, agents.paying, runs=runs, patterns=(*runner.review.SECRET_PATTERNS, re.compile("approve"))
    )
    assert (told.divergence, told.drift) == (None, ())
    assert data.count(b"[secret]") > 5
    assert b'"answer":"approve"' in data  # a word of ours, whatever a pattern says
    for word in (agents.HIDDEN, "hunter22"):
        assert word.encode() not in data
    path = tmp_path / "history.jsonl"
    path.write_bytes(data)
    again = runner.review.retrace_export(path, agents.paying)
    assert (again.divergence, again.drift) == (None, ())
    whole = runner.review.retrace(paid, agents.paying, runs=runs)
    assert (again.decisions, again.seq) == (whole.decisions, whole.seq)
    assert b'"how":"refused"' in data


def test_a_secret_in_a_label_is_masked(runs: Path) -> None:
    """By its looks, and by the label's name."""
    agent = runner.Agent(name="a", model=runner.testing.ScriptedModel(["over"]))
    labels = {"team": "ghp_" + "a1" * 18, "password": "hunter22", "kind": "nightly"}
    runner.start_sync(agent, "x", runs=runs, run="r", labels=labels)
    exported, _ = runner.review.export("r", agent, runs=runs)
    assert b'{"kind":"nightly","password":"[secret]","team":"[secret]"}' in exported


def test_nothing_of_the_machine_is_exported(paid: str, runs: Path, tmp_path: Path) -> None:
    """A test goes where the log does not: no host, no process, no workspace's path."""
    task = f"look into {tmp_path}/a.txt"
    runner.start_sync(agents.looking, task, runs=runs, run="looked", workspace=tmp_path)
    data, _ = runner.review.export("looked", agents.looking, runs=runs)
    assert str(tmp_path).encode() not in data
    assert b'"task":"look into workspace/a.txt"' in data
    hosts = re.findall(rb'"host":"([^"]*)","pid":(\d+)', data)
    assert hosts == [(b"", b"0")]
    assert paid.encode() not in data


def test_patterns_of_the_user_are_masked_too(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A customer's number looks like any other."""
    runner.start_sync(agents.looking, "look for customer 7788", runs=runs, run="looked")
    words = ("export", "looked", f"{AT}looking", "--pytest", tmp_path / "test_it.py")
    assert refold(*words, "--redact", r"customer \d+").status == 0
    data = (tmp_path / "test_it.history.jsonl").read_text(encoding="utf-8")
    assert '"task":"look for [secret]"' in data
    assert "hunter22" not in data
    assert refold(*words, "--redact", "(").status == 2


def test_masks_that_would_change_a_decision_are_refused(runs: Path) -> None:
    """Two payments that become one are no history of two."""
    pays = [runner.testing.tool_calls(("pay", {"cents": 7, "token": token})) for token in ("ann-1234", "bob-1234")]
    twice = agents.paying.replace(model=runner.testing.ScriptedModel([*pays, "Done."]), approve="off")
    runner.start_sync(twice, "pay both", runs=runs, run="twice")
    with pytest.raises(runner.review.CannotExport, match="twice can't be exported") as raised:
        runner.review.export("twice", twice, runs=runs)
    assert raised.value.hint
    data, told = runner.review.export("twice", twice, runs=runs, patterns=())
    assert told.divergence is None
    assert b"ann-1234" in data


def test_a_run_that_diverges_already_is_exported_and_said_so(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """The test then fails until the code is right: that may be what it is made for."""
    runner.start_sync(agents.looking, "look", runs=runs, run="looked")
    test = tmp_path / "test_it.py"
    refold("export", "looked", f"{AT}looking_elsewhere", "--pytest", test).ends(
        0, err="the test fails as it is, because the current code diverges at line 3"
    )
    history = tmp_path / "test_it.history.jsonl"
    assert runner.review.retrace_export(history, agents.looking).divergence is None
    with pytest.raises(replay.Diverged):
        runner.review.retrace_export(history, agents.looking_elsewhere).check()


def test_the_same_test_is_made_again_and_no_other_file_is_overwritten(
    refold: Refold, runs: Path, tmp_path: Path
) -> None:
    """What somebody wrote by hand is not ours to replace."""
    runner.start_sync(agents.looking, "look", runs=runs, run="looked")
    test = tmp_path / "test_it.py"
    words = ("export", "looked", "--agent=tests.review.retrace.agents:Holder.inner", "--pytest")
    assert refold(*words, test).status == 0
    assert "tests.review.retrace.agents.Holder.inner" in test.read_text(encoding="utf-8")
    first = test.read_bytes(), (tmp_path / "test_it.history.jsonl").read_bytes()
    assert refold(*words, test).status == 0
    assert (test.read_bytes(), (tmp_path / "test_it.history.jsonl").read_bytes()) == first
    test.write_text("def test_mine(): ...\n", encoding="utf-8")
    refold(*words, test).ends(2, err="was not made by this command")
    assert refold(*words, tmp_path / "mine.py").status == 2


def _no_word_is_masked(messages: Sequence[object], _summary: object, _usage: object) -> None:
    if "acme" not in str(messages):
        raise KeyError("acme")


@dataclass
class Tenant:
    """Whose run it is."""

    name: Literal["acme"]


READING: list[dict[str, Any]] = [
    {"context": _no_word_is_masked},
    {"inputs": Tenant, "instructions": lambda tenant: tenant.name},
]


@pytest.mark.parametrize("options", READING, ids=["policy", "inputs"])
def test_code_that_raises_on_masked_words_is_told_as_a_history_that_goes_another_way(
    runs: Path, options: dict[str, Any]
) -> None:
    """Whoever exports learns at which line, and that other patterns help."""
    agent = runner.Agent(name="a", model=runner.testing.ScriptedModel(["Done."]), **options)
    inputs = Tenant("acme") if "inputs" in options else None
    runner.start_sync(agent, "Do it for acme.", runs=runs, run="p", inputs=inputs)
    with pytest.raises(runner.review.CannotExport, match="goes another way at line 2: the current code raises"):
        runner.review.export("p", agent, runs=runs, patterns=[re.compile("acme")])


def test_behind_a_divergence_questions_and_answers_still_fit_their_masked_arguments(runs: Path, tmp_path: Path) -> None:
    """Once the code is right again, the rest of the history counts too."""
    runner.start_sync(agents.tipping, "tip", runs=runs, run="tipped")
    runner.approve("tipped", "2.0-approve", runs=runs, who="ann")
    runner.resume_sync("tipped", agents.tipping, runs=runs)
    data, told = runner.review.export("tipped", agents.looking_elsewhere, runs=runs)
    assert told.divergence is not None
    assert agents.HIDDEN.encode() not in data
    path = tmp_path / "history.jsonl"
    path.write_bytes(data)
    assert runner.review.retrace_export(path, agents.tipping).divergence is None


def test_masks_that_make_arguments_invalid_are_refused(runs: Path) -> None:
    """A password that is one of a few words is no longer one of them."""
    story = Story(agents.entering)
    story.reply(("open_door", '{"password": "abcd"}'))
    logged(story, runs)
    with pytest.raises(runner.review.CannotExport, match="goes another way at line 3"):
        runner.review.export("r", agents.entering, runs=runs)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"not json\n", b'{"seq":0,"life":1,"at":"2026-01-01T00:00:00Z"}\n'])
def test_a_file_that_is_no_export_is_named(tmp_path: Path, content: bytes) -> None:
    """It must not pass for a history without decisions."""
    path = tmp_path / "x.history.jsonl"
    path.write_bytes(content)
    with pytest.raises(runner.review.BadExport, match=r"x\.history\.jsonl is not an export"):
        runner.review.retrace_export(path, agents.looking)
    with pytest.raises(runner.review.BadExport):
        runner.review.retrace_export(tmp_path / "gone", agents.looking)
