"""`--on-question CMD`: a command of the user's decides, and a hook that breaks decides nothing."""

import json
import shlex
import signal
import sys
from pathlib import Path

import pytest

import eventlog
import runner
from replay.events import QuestionAnswered
from tests.cli import scenes
from tests.cli.conftest import Agent, Refold


def _hook(tmp_path: Path, body: str) -> str:
    """A command line that runs `body` with the question in `asked`."""
    script = tmp_path / "a hook.py"
    script.write_text(f"import json, sys, time\nfrom pathlib import Path\nasked = json.load(sys.stdin)\n{body}\n")
    return shlex.join([sys.executable, str(script)])


def _answer(runs: Path) -> QuestionAnswered | None:
    (run,) = eventlog.store(runs).names()
    (question,) = runner.read_state(run, runs).questions.values()
    return question.answer


def test_a_hook_is_given_the_question_and_its_answer_is_taken(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """All that a person would see is in the JSON, the arguments as the model wrote them."""
    hook = _hook(
        tmp_path, 'json.dump(asked, open(\'asked.json\', \'w\')); print(\'{"verdict": "approve", "who": "bot"}\')'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        said = refold("run", "pay", Agent("paying"), "--on-question", hook)
    assert (said.status, said.out) == (0, "Ann has it.\n")
    asked = json.loads((tmp_path / "asked.json").read_text())
    (run,) = eventlog.store(runs).names()
    assert asked.pop("at")
    assert asked == {
        "run": run,
        "id": "1.0-approve",
        "kind": "approve",
        "call": "1.0",
        "tool": "pay",
        "arguments": '{"amount": 7, "to": "ann"}',
        "why": "the tool needs a yes",
    }
    answer = _answer(runs)
    assert answer is not None
    assert (answer.answer, answer.who) == ("approve", "bot")


def test_a_hook_may_refuse_with_a_reason_and_is_named_when_it_names_nobody(
    refold: Refold, runs: Path, tmp_path: Path
) -> None:
    """Whoever reads the log must find out what decided."""
    hook = _hook(tmp_path, 'print(\'{"verdict": "refuse", "text": "too much"}\')')
    refold("run", "pay", Agent("paying"), "--on-question", hook).ends(0)
    answer = _answer(runs)
    assert answer is not None
    assert (answer.answer, answer.who, answer.text) == ("refuse", hook, "too much")


def test_a_hook_settles_what_the_ladder_asks(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """The same command serves both kinds of question."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    hook = _hook(tmp_path, 'assert asked[\'kind\'] == \'settle\'; print(\'{"verdict": "done", "text": "it is up"}\')')
    refold("resume", run, Agent("unsure"), "--on-question", hook).ends(0, "It flies.\n", err="stated: it is up")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("", None),
        ("print('null')", None),
        ("sys.exit(3)", "it ended with status 3"),
        ('print(\'{"verdict": "approve"}\'); sys.exit(1)', "it ended with status 1"),
        ("print('yes')", "its answer can't be read"),
        ('print(\'{"verdict": "perhaps"}\')', "its answer can't be read"),
        ('print(\'{"verdict": "approve", "because": 1}\')', "its answer can't be read"),
        ("sys.stdout.buffer.write(b'\\xff')", "its answer can't be read"),
        ('print(\'{"verdict": "rerun"}\')', "rerun does not answer a question of kind approve"),
    ],
)
def test_a_hook_that_does_not_answer_leaves_the_question_open(
    refold: Refold, runs: Path, tmp_path: Path, body: str, says: str | None
) -> None:
    """An approval must come from an answer, never from an accident."""
    said = refold("run", "pay", Agent("paying"), "--on-question", _hook(tmp_path, body)).ends(3)
    assert _answer(runs) is None
    assert (says is None and "stays open" not in said.err) or (says is not None and says in said.err)


@pytest.mark.parametrize("command", ["", "no-such-command-here x", "'unclosed"])
def test_a_hook_that_is_no_command_is_refused_before_the_run_starts(refold: Refold, runs: Path, command: str) -> None:
    """A spelling mistake found at the first question, an hour later, would be found too late."""
    refold("run", "pay", Agent("paying"), "--on-question", command).ends(2, err="--on-question")
    assert not runs.exists()


def test_a_hook_that_can_not_be_started_leaves_the_question_open(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """It is there and may be executed, yet the system does not know how."""
    broken = tmp_path / "hook"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o700)
    refold("run", "pay", Agent("paying"), "--on-question", broken).ends(
        3, err=f"stays open: {broken}: it could not be started"
    )
    assert _answer(runs) is None


def test_a_signal_ends_the_hook_and_leaves_the_question_open(runs: Path, tmp_path: Path) -> None:
    """A deploy does not wait for a hook that waits for a person."""
    meeting = tmp_path / "meeting"
    child = "import subprocess; subprocess.Popen(['sleep', '50'], stderr=subprocess.DEVNULL);"
    hook = _hook(tmp_path, f"{child} Path({str(meeting / 'began')!r}).touch(); time.sleep(60)")
    words = ("run", "pay", str(Agent("paying")), "--on-question", hook)
    with scenes.live(runs, tmp_path, *words) as (running, _):
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=40)
        assert running.returncode == 3
    assert "waits for a person" in out
    assert err.splitlines()[-1].endswith(" paused, waits for a person")
    assert _answer(runs) is None


def test_resuming_every_run_asks_the_hook_too(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """After a deploy nobody sits at a terminal."""
    scenes.asking(runs)
    hook = _hook(tmp_path, 'print(\'{"verdict": "approve"}\')')
    refold("resume", "--all", Agent("paying"), "--on-question", hook).ends(0, "asking-run  done\n")
